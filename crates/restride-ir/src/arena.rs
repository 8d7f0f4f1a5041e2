//! Append-only arenas with typed ids.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index into an [`IdArena`].
pub trait Id: Copy + Eq + std::hash::Hash + Ord + std::fmt::Debug {
    /// The id of the element at `index`.
    fn new(index: usize) -> Self;
    /// Position in the arena.
    fn index(self) -> usize;
}

/// Declares an id type that prints as its prefix and number.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        impl $crate::arena::Id for $name {
            fn new(index: usize) -> Self {
                $name(u32::try_from(index).expect("an arena holds fewer than 2^32 elements"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}
pub(crate) use id_type;

/// An append-only vector indexed by a typed id.
#[derive(Clone, PartialEq, Debug)]
pub struct IdArena<I, T> {
    items: Vec<T>,
    ids: PhantomData<fn() -> I>,
}

impl<I: Id, T> Default for IdArena<I, T> {
    fn default() -> Self {
        IdArena { items: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> IdArena<I, T> {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }
    /// Appends and returns the id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }
    /// Reserves capacity for `more` elements.
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve(more);
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether the arena is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Elements with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (I::new(i), t))
    }
    /// All ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }
    /// The element with this id; `None` for an id of a larger arena.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
}

impl<I: Id, T> Index<I> for IdArena<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}
impl<I: Id, T> IndexMut<I> for IdArena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// A side table with one entry an id; missing entries are `T::default()`.
#[derive(Clone, PartialEq, Debug)]
pub struct Table<I, T> {
    items: Vec<T>,
    ids: PhantomData<fn() -> I>,
    default: T,
}

impl<I: Id, T: Clone + Default> Default for Table<I, T> {
    fn default() -> Self {
        Table { items: Vec::new(), ids: PhantomData, default: T::default() }
    }
}

impl<I: Id, T: Clone + Default> Table<I, T> {
    /// A table where every entry is the default.
    pub fn new() -> Self {
        Self::default()
    }
    /// A table where every entry is the default, with memory for those of an arena of `len` elements.
    pub fn with_capacity(len: usize) -> Self {
        Table { items: Vec::with_capacity(len), ..Self::default() }
    }
    /// Sets an entry.
    pub fn set(&mut self, id: I, value: T) {
        *self.entry(id) = value;
    }
    /// A mutable entry.
    pub fn entry(&mut self, id: I) -> &mut T {
        if id.index() >= self.items.len() {
            self.items.resize(id.index() + 1, self.default.clone());
        }
        &mut self.items[id.index()]
    }
}

impl<I: Id, T: Clone + Default> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.items.get(id.index()).unwrap_or(&self.default)
    }
}
