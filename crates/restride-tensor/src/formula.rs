//! Formulas of singles as data: what a function of elements computes, step by step, for code that is generated of it.
//!
//! A function on [`FormulaTerm`]s writes its steps down as it runs. Each step has the meaning of the operation of the same name on `f32`;
//! comparisons give truth values, which only [`FormulaTerm::choose`] and its like take.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An operation on one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryStep {
    /// `-x`
    Negate,
    /// `x.abs()`
    Magnitude,
    /// `x.sqrt()`
    Root,
    /// `x.floor()`
    Floor,
    /// `x.ceil()`
    Ceil,
    /// `x.trunc()`
    Truncate,
    /// `x.round_ties_even()`
    Round,
    /// The other truth value.
    Not,
}

/// An operation on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryStep {
    /// `x + y`
    Add,
    /// `x - y`
    Subtract,
    /// `x * y`
    Multiply,
    /// `x / y`
    Divide,
    /// `x == y`
    Equal,
    /// `x != y`
    Differ,
    /// `x < y`
    Less,
    /// `x <= y`
    AtMost,
    /// `if x > y { x } else { y }`
    Larger,
    /// `if x < y { x } else { y }`
    Smaller,
    /// Both truth values.
    Both,
    /// One of the truth values.
    Either,
}

/// A step; it names earlier ones by their position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FormulaStep {
    /// The operand of this number.
    Operand(u16),
    /// The operand of this number. All elements share its one value.
    Shared(u16),
    /// The single of these bits.
    Number(u32),
    /// Of one number.
    Unary(UnaryStep, u16),
    /// Of two.
    Binary(BinaryStep, u16, u16),
    /// The second where the first, a truth value, holds, else the third.
    Choose([u16; 3]),
}

impl FormulaStep {
    /// The steps that it names.
    pub fn sources(&self) -> impl Iterator<Item = u16> {
        let (all, n) = match *self {
            FormulaStep::Operand(_) | FormulaStep::Shared(_) | FormulaStep::Number(_) => ([0; 3], 0),
            FormulaStep::Unary(_, x) => ([x, 0, 0], 1),
            FormulaStep::Binary(_, x, y) => ([x, y, 0], 2),
            FormulaStep::Choose(all) => (all, 3),
        };
        all.into_iter().take(n)
    }
}

/// Steps in the order in which they were written down; equal ones are one.
#[derive(Default, Debug)]
pub struct Formula(RefCell<Vec<FormulaStep>>);

/// A function of terms, as many as it has operands.
pub type FormulaFn = for<'a> fn(&[FormulaTerm<'a>]) -> FormulaTerm<'a>;

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub struct FormulaTerm<'a> {
    formula: &'a Formula,
    at: u16,
}

impl Formula {
    /// The operand of a number.
    pub fn operand(&self, k: u16) -> FormulaTerm<'_> {
        self.step(FormulaStep::Operand(k))
    }

    /// The operand of a number. All elements share its one value.
    pub fn shared(&self, k: u16) -> FormulaTerm<'_> {
        self.step(FormulaStep::Shared(k))
    }

    /// A number.
    pub fn number(&self, x: f32) -> FormulaTerm<'_> {
        self.step(FormulaStep::Number(x.to_bits()))
    }

    /// The steps so far.
    pub fn steps(&self) -> Vec<FormulaStep> {
        self.0.borrow().clone()
    }

    /// Writes a step down, or what it comes to where its numbers are known.
    fn step(&self, step: FormulaStep) -> FormulaTerm<'_> {
        let mut steps = self.0.borrow_mut();
        let known = |at: u16| match steps[usize::from(at)] {
            FormulaStep::Number(bits) => Some(bits),
            _ => None,
        };
        let step = match step {
            FormulaStep::Choose([c, a, b]) if let Some(truth) = known(c) => {
                return FormulaTerm { formula: self, at: if truth != 0 { a } else { b } };
            }
            FormulaStep::Choose([c, a, b]) => match steps[usize::from(c)] {
                FormulaStep::Binary(BinaryStep::Less, x, y) if (x, y) == (a, b) => {
                    FormulaStep::Binary(BinaryStep::Smaller, x, y)
                }
                FormulaStep::Binary(BinaryStep::Less, x, y) if (x, y) == (b, a) => {
                    FormulaStep::Binary(BinaryStep::Larger, y, x)
                }
                _ => step,
            },
            FormulaStep::Binary(BinaryStep::Either, x, y) if known(x) == Some(0) => {
                return FormulaTerm { formula: self, at: y };
            }
            FormulaStep::Binary(BinaryStep::Either, x, y) if known(y) == Some(0) => {
                return FormulaTerm { formula: self, at: x };
            }
            FormulaStep::Unary(op, x) if let Some(x) = known(x) => {
                FormulaStep::Number(unary(op, f32::from_bits(x)).to_bits())
            }
            FormulaStep::Binary(op, x, y) if let (Some(x), Some(y)) = (known(x), known(y)) => {
                FormulaStep::Number(binary(op, f32::from_bits(x), f32::from_bits(y)).to_bits())
            }
            step => step,
        };
        let at = steps.iter().position(|s| *s == step).unwrap_or_else(|| {
            steps.push(step);
            steps.len() - 1
        });
        FormulaTerm { formula: self, at: at as u16 }
    }
}

impl<'a> FormulaTerm<'a> {
    /// The position of its step.
    pub fn at(self) -> u16 {
        self.at
    }

    /// A number of the same formula.
    pub fn number(self, x: f32) -> FormulaTerm<'a> {
        self.formula.number(x)
    }

    fn unary(self, op: UnaryStep) -> FormulaTerm<'a> {
        self.formula.step(FormulaStep::Unary(op, self.at))
    }

    fn binary(self, op: BinaryStep, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.formula.step(FormulaStep::Binary(op, self.at, other.at))
    }

    /// Absolute value.
    pub fn abs(self) -> FormulaTerm<'a> {
        self.unary(UnaryStep::Magnitude)
    }

    /// Square root.
    pub fn sqrt(self) -> FormulaTerm<'a> {
        self.unary(UnaryStep::Root)
    }

    /// Rounded down.
    pub fn floor(self) -> FormulaTerm<'a> {
        self.unary(UnaryStep::Floor)
    }

    /// Rounded up.
    pub fn ceil(self) -> FormulaTerm<'a> {
        self.unary(UnaryStep::Ceil)
    }

    /// Cut towards zero.
    pub fn trunc(self) -> FormulaTerm<'a> {
        self.unary(UnaryStep::Truncate)
    }

    /// Rounded to nearest, halves to even.
    pub fn rint(self) -> FormulaTerm<'a> {
        self.unary(UnaryStep::Round)
    }

    /// The larger; NaN if either is.
    pub fn larger(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.is_nan().or(other.below(self)).choose(self, other)
    }

    /// The smaller; NaN if either is.
    pub fn smaller(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.is_nan().or(self.below(other)).choose(self, other)
    }

    /// Whether it is not a number.
    pub fn is_nan(self) -> FormulaTerm<'a> {
        self.differs(self)
    }

    /// `self == other`
    pub fn equals(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.binary(BinaryStep::Equal, other)
    }

    /// `self != other`
    pub fn differs(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.binary(BinaryStep::Differ, other)
    }

    /// `self < other`
    pub fn below(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.binary(BinaryStep::Less, other)
    }

    /// `self <= other`
    pub fn at_most(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.binary(BinaryStep::AtMost, other)
    }

    /// Both truth values.
    pub fn and(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.binary(BinaryStep::Both, other)
    }

    /// One of the truth values.
    pub fn or(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.binary(BinaryStep::Either, other)
    }

    /// `a` where the truth value holds, else `b`.
    pub fn choose(self, a: FormulaTerm<'a>, b: FormulaTerm<'a>) -> FormulaTerm<'a> {
        self.formula.step(FormulaStep::Choose([self.at, a.at, b.at]))
    }

    /// The truth value as 1 or 0.
    pub fn as_number(self) -> FormulaTerm<'a> {
        self.choose(self.number(1.0), self.number(0.0))
    }

    /// Whether the number is not zero.
    pub fn holds(self) -> FormulaTerm<'a> {
        let one = FormulaStep::Number(1f32.to_bits());
        let zero = FormulaStep::Number(0f32.to_bits());
        let truth = {
            let steps = self.formula.0.borrow();
            match steps[usize::from(self.at)] {
                FormulaStep::Choose([truth, a, b]) if steps[usize::from(a)] == one && steps[usize::from(b)] == zero => {
                    Some(truth)
                }
                _ => None,
            }
        };
        match truth {
            Some(at) => FormulaTerm { formula: self.formula, at },
            None => self.differs(self.number(0.0)),
        }
    }
}

impl std::ops::Not for FormulaTerm<'_> {
    type Output = Self;
    fn not(self) -> Self {
        self.unary(UnaryStep::Not)
    }
}

impl Neg for FormulaTerm<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary(UnaryStep::Negate)
    }
}

macro_rules! arithmetic {
    ($($operator:ident $name:ident $step:ident),*) => {$(
        impl<'a> $operator for FormulaTerm<'a> {
            type Output = FormulaTerm<'a>;
            fn $name(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
                self.binary(BinaryStep::$step, other)
            }
        }
        impl<'a> $operator<f32> for FormulaTerm<'a> {
            type Output = FormulaTerm<'a>;
            fn $name(self, other: f32) -> FormulaTerm<'a> {
                self.binary(BinaryStep::$step, self.number(other))
            }
        }
        impl<'a> $operator<FormulaTerm<'a>> for f32 {
            type Output = FormulaTerm<'a>;
            fn $name(self, other: FormulaTerm<'a>) -> FormulaTerm<'a> {
                other.number(self).binary(BinaryStep::$step, other)
            }
        }
    )*};
}
arithmetic!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

/// A truth value: all bits or none.
fn truth(yes: bool) -> f32 {
    f32::from_bits(u32::from(yes).wrapping_neg())
}

fn holds(x: f32) -> bool {
    x.to_bits() != 0
}

fn unary(op: UnaryStep, x: f32) -> f32 {
    match op {
        UnaryStep::Negate => -x,
        UnaryStep::Magnitude => x.abs(),
        UnaryStep::Root => x.sqrt(),
        UnaryStep::Floor => x.floor(),
        UnaryStep::Ceil => x.ceil(),
        UnaryStep::Truncate => x.trunc(),
        UnaryStep::Round => x.round_ties_even(),
        UnaryStep::Not => truth(!holds(x)),
    }
}

fn binary(op: BinaryStep, x: f32, y: f32) -> f32 {
    match op {
        BinaryStep::Add => x + y,
        BinaryStep::Subtract => x - y,
        BinaryStep::Multiply => x * y,
        BinaryStep::Divide => x / y,
        BinaryStep::Equal => truth(x == y),
        BinaryStep::Differ => truth(x != y),
        BinaryStep::Less => truth(x < y),
        BinaryStep::AtMost => truth(x <= y),
        BinaryStep::Larger => {
            if x > y {
                x
            } else {
                y
            }
        }
        BinaryStep::Smaller => {
            if x < y {
                x
            } else {
                y
            }
        }
        BinaryStep::Both => truth(holds(x) && holds(y)),
        BinaryStep::Either => truth(holds(x) || holds(y)),
    }
}

/// The result of the last step of `steps` on these operands.
///
/// ```
/// use restride_tensor::{Formula, evaluate};
///
/// let formula = Formula::default();
/// let (x, y) = (formula.operand(0), formula.operand(1));
/// let _ = (x - y).abs() * 0.5;
/// assert_eq!(evaluate(&formula.steps(), &[1.0, 4.0]), 1.5);
/// ```
pub fn evaluate(steps: &[FormulaStep], operands: &[f32]) -> f32 {
    let mut values: Vec<f32> = Vec::with_capacity(steps.len());
    for step in steps {
        let of = |at: u16| values[usize::from(at)];
        values.push(match *step {
            FormulaStep::Operand(k) | FormulaStep::Shared(k) => operands[usize::from(k)],
            FormulaStep::Number(bits) => f32::from_bits(bits),
            FormulaStep::Unary(op, x) => unary(op, of(x)),
            FormulaStep::Binary(op, x, y) => binary(op, of(x), of(y)),
            FormulaStep::Choose([c, a, b]) => of(if holds(of(c)) { a } else { b }),
        });
    }
    values.last().copied().unwrap_or_default()
}
