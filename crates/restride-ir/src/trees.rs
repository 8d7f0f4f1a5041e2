//! Collecting into B-trees.

use std::collections::{BTreeMap, BTreeSet};

/// Collects into B-trees key by key.
///
/// `collect` sorts first and then builds the tree, with code of its own for each kind of iterator: 4 kB each time. Insertion is
/// shared by all iterators over the same keys and values.
pub trait CollectTree: Iterator + Sized {
    /// A map of the pairs; of equal keys, the last one's value.
    fn collect_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }

    /// A set of the items.
    fn collect_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }
}

impl<I: Iterator> CollectTree for I {}
