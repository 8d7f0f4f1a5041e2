//! How operators on numbers are written down.

/// A loop of one expression per element, over operands of type `$t`, which the expression knows as `T`, and its parts' type as
/// `F`, into results of type `$r`.
macro_rules! each_element {
    ($t:ty, $r:ty, $xs:ident, $out:ident, ($($x:ident),+), $e:expr) => {{
        #[allow(dead_code)]
        type T = $t;
        #[allow(dead_code)]
        type F = <$t as $crate::pointwise::Parts>::Real;
        let n = $out.len();
        let [$($x),+] = $xs else { unreachable!("a row function gets its operands") };
        $(let $x = &$x[..n];)+
        for (i, o) in $out.iter_mut().enumerate() {
            $(let $x: $t = $x[i];)+
            *o = $e;
        }
    }};
}

/// A row function that is compiled for the baseline.
macro_rules! rowwise {
    ($t:ty, $r:ty, $args:tt, $e:expr) => {
        |xs, out| each_element!($t, $r, xs, out, $args, $e)
    };
}

/// A row function whose body is compiled for several instruction sets by `isa::$run`; with AVX-512 if `$widest`.
macro_rules! row_function {
    ($run:ident, $widest:literal, $t:ty, $r:ty, |$xs:ident, $out:ident| $body:expr) => {
        |xs, out| {
            struct Row<'a>(&'a [&'a [$t]], &'a mut [$r]);
            impl $crate::support::isa::Work for Row<'_> {
                type Out = ();
                const WIDEST: bool = $widest;
                #[inline(always)]
                fn run(self) {
                    let Row($xs, $out) = self;
                    $body
                }
            }
            $crate::support::isa::$run(Row(xs, out))
        }
    };
}

/// A row function that is compiled for several instruction sets; with AVX-512 if `$widest`.
macro_rules! rowwise_wide {
    ($widest:literal, $t:ty, $r:ty, $args:tt, $e:expr) => {
        row_function!(run, $widest, $t, $r, |xs, out| each_element!($t, $r, xs, out, $args, $e))
    };
}

/// As [`each_element`], of truth values: the expression knows them as `u8`, 0 or 1.
macro_rules! each_truth {
    ($r:ident, $xs:ident, $out:ident, ($($x:ident),+), $e:expr) => {{
        #[allow(dead_code)]
        type T = u8;
        let n = $out.len();
        let [$($x),+] = $xs else { unreachable!("a row function gets its operands") };
        $(let $x = &$x[..n];)+
        for (i, o) in $out.iter_mut().enumerate() {
            $(let $x = u8::from($x[i].holds());)+
            *o = TruthByte::from(truth_of!($r $e));
        }
    }};
}

/// Whether a result is true.
macro_rules! truth_of {
    (number $e:expr) => {
        $e != 0
    };
    (truth $e:expr) => {
        $e
    };
}

/// A row function of narrow integers, which processors without the vectors of `isa::has_vectors` compute as wide ones.
macro_rules! rowwise_narrow {
    ($t:ty, $r:ty, $args:tt, $e:expr) => {
        row_function!(run_narrow, false, $t, $r, |xs, out| each_element!($t, $r, xs, out, $args, $e))
    };
}

/// As [`rowwise_narrow`], of truth values.
macro_rules! truthwise {
    ($r:ident, $args:tt, $e:expr) => {{
        use $crate::pointwise::TruthByte;
        row_function!(run_narrow, false, TruthByte, TruthByte, |xs, out| each_truth!($r, xs, out, $args, $e))
    }};
}

/// The type of results: the compute type, or `bool`.
macro_rules! result {
    (number $t:ty) => {
        $t
    };
    (truth $t:ty) => {
        bool
    };
}

/// Sets the row functions of one group of compute types:
/// - `int` is the integers, `integer` the same for comparisons and shifts of 64 bits, which the first vectors lack.
/// - `whole` is `int` and the narrow integers in their own type, where one expression gives the same result in both. An `integer` behind
///   it replaces its `int`.
/// - `wrapping` is `whole` for expressions whose result has the same bits with and without signs.
/// - `real` is arithmetic of reals. `basic` is `real` that the executor also compiles into machine code, by a `Formula`; `formula` gives
///   that `Formula` alone.
/// - `elementary` has the functions of `support/math.rs`, which run in the widest vectors; `exponential` has those of them that
///   `support/math.rs` has of doubles too.
/// - `single` and `double` are one type each; `long_single` is `single` in the widest vectors.
macro_rules! group {
    ($p:ident, $r:ident, int, $xs:tt, $e:expr) => {
        $p.int = Some(rowwise!(i64, result!($r i64), $xs, $e));
    };
    ($p:ident, $r:ident, integer, $xs:tt, $e:expr) => {
        $p.int = Some(rowwise_wide!(true, i64, result!($r i64), $xs, $e));
    };
    ($p:ident, number, whole, $xs:tt, $e:expr) => {
        $p.int = Some(rowwise!(i64, i64, $xs, $e));
        $p.narrow = Some($crate::pointwise::NarrowRows {
            truth: truthwise!(number, $xs, $e),
            u8: rowwise_narrow!(u8, u8, $xs, $e),
            i32: rowwise_narrow!(i32, i32, $xs, $e),
            signless: false,
        });
    };
    ($p:ident, truth, whole, $xs:tt, $e:expr) => {
        $p.int = Some(rowwise!(i64, bool, $xs, $e));
        $p.narrow = Some($crate::pointwise::NarrowAnswers {
            truth: truthwise!(truth, $xs, $e),
            u8: rowwise_narrow!(u8, bool, $xs, $e),
            i32: rowwise_narrow!(i32, bool, $xs, $e),
            signless: false,
        });
    };
    ($p:ident, $r:ident, wrapping, $xs:tt, $e:expr) => {
        group!($p, $r, whole, $xs, $e);
        if let Some(rows) = &mut $p.narrow {
            rows.signless = true;
        }
    };
    ($p:ident, $r:ident, real, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise_wide!(false, f32, result!($r f32), $xs, $e));
        $p.f64 = Some(rowwise!(f64, result!($r f64), $xs, $e));
    };
    ($p:ident, $r:ident, elementary, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise_wide!(true, f32, result!($r f32), $xs, $e));
        $p.f64 = Some(rowwise_wide!(false, f64, result!($r f64), $xs, $e));
    };
    ($p:ident, $r:ident, exponential, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise_wide!(true, f32, result!($r f32), $xs, $e));
        $p.f64 = Some(rowwise_wide!(true, f64, result!($r f64), $xs, $e));
    };
    ($p:ident, $r:ident, library, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise!(f32, result!($r f32), $xs, $e));
        $p.f64 = Some(rowwise!(f64, result!($r f64), $xs, $e));
    };
    ($p:ident, $r:ident, single, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise_wide!(false, f32, result!($r f32), $xs, $e));
    };
    ($p:ident, $r:ident, long_single, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise_wide!(true, f32, result!($r f32), $xs, $e));
    };
    ($p:ident, $r:ident, double, $xs:tt, $e:expr) => {
        $p.f64 = Some(rowwise!(f64, result!($r f64), $xs, $e));
    };
    ($p:ident, $r:ident, single_rows, $xs:tt, $e:expr) => {
        $p.f32 = Some($e);
    };
    ($p:ident, $r:ident, double_rows, $xs:tt, $e:expr) => {
        $p.f64 = Some($e);
    };
    ($p:ident, $r:ident, complex, $xs:tt, $e:expr) => {
        $p.c32 = Some(rowwise!(C32, result!($r C32), $xs, $e));
        $p.c64 = Some(rowwise!(C64, result!($r C64), $xs, $e));
    };
    ($p:ident, $r:ident, formula, ($($x:ident),+), $e:expr) => {
        $p.formula = Some(|xs| {
            let &[$($x),+] = xs else { unreachable!("a formula gets its operands") };
            $e
        });
    };
    ($p:ident, $r:ident, basic, $xs:tt, $e:expr) => {
        group!($p, $r, real, $xs, $e);
        group!($p, $r, formula, $xs, $e);
    };
    ($p:ident, $r:ident, check, $xs:tt, $e:expr) => {
        $p.check = Some($e);
    };
}

/// Declares operators: `NAME(x, y) "what it is" { int: …, real: …, complex: … }`.
macro_rules! pointwise {
    ($($name:ident $xs:tt $doc:literal { $($group:ident: $e:expr),+ $(,)? })*) => {$(
        #[doc = $doc]
        pub static $name: $crate::pointwise::Pointwise = {
            let mut p = $crate::pointwise::Pointwise::NONE;
            $(group!(p, number, $group, $xs, $e);)+
            p
        };
    )*};
}

/// Declares questions, as `pointwise!` declares operators.
macro_rules! predicates {
    ($($name:ident $xs:tt $doc:literal { $($group:ident: $e:expr),+ $(,)? })*) => {$(
        #[doc = $doc]
        pub static $name: $crate::pointwise::Predicate = {
            let mut p = $crate::pointwise::Predicate::NONE;
            $(group!(p, truth, $group, $xs, $e);)+
            p
        };
    )*};
}
