//! How operators on numbers are written down.

/// A row function of one expression per element, on operands of type `$t`, which the expression knows as `T`, and
/// its parts' type as `F`.
macro_rules! rowwise {
    ($t:ty, ($x:ident), $e:expr) => {
        |xs, out| {
            #[allow(dead_code)]
            type T = $t;
            #[allow(dead_code)]
            type F = <$t as $crate::pointwise::Parts>::Real;
            let $x = &xs[0][..out.len()];
            for (i, o) in out.iter_mut().enumerate() {
                let $x: $t = $x[i];
                *o = $e;
            }
        }
    };
    ($t:ty, ($x:ident, $y:ident), $e:expr) => {
        |xs, out| {
            #[allow(dead_code)]
            type T = $t;
            #[allow(dead_code)]
            type F = <$t as $crate::pointwise::Parts>::Real;
            let n = out.len();
            let ($x, $y) = (&xs[0][..n], &xs[1][..n]);
            for (i, o) in out.iter_mut().enumerate() {
                let ($x, $y): ($t, $t) = ($x[i], $y[i]);
                *o = $e;
            }
        }
    };
    ($t:ty, ($x:ident, $y:ident, $z:ident), $e:expr) => {
        |xs, out| {
            #[allow(dead_code)]
            type T = $t;
            #[allow(dead_code)]
            type F = <$t as $crate::pointwise::Parts>::Real;
            let n = out.len();
            let ($x, $y, $z) = (&xs[0][..n], &xs[1][..n], &xs[2][..n]);
            for (i, o) in out.iter_mut().enumerate() {
                let ($x, $y, $z): ($t, $t, $t) = ($x[i], $y[i], $z[i]);
                *o = $e;
            }
        }
    };
    ($t:ty, ($x:ident, $y:ident, $z:ident, $($w:ident),+), $e:expr) => {
        |xs, out| {
            #[allow(dead_code)]
            type T = $t;
            #[allow(dead_code)]
            type F = <$t as $crate::pointwise::Parts>::Real;
            let n = out.len();
            let [$x, $y, $z, $($w),+] = xs else { unreachable!("a row function gets its operands") };
            let ($x, $y, $z, $($w),+) = (&$x[..n], &$y[..n], &$z[..n], $(&$w[..n]),+);
            for (i, o) in out.iter_mut().enumerate() {
                let ($x, $y, $z): ($t, $t, $t) = ($x[i], $y[i], $z[i]);
                $(let $w: $t = $w[i];)+
                *o = $e;
            }
        }
    };
}

/// Sets the row functions of one group of compute types.
macro_rules! group {
    ($p:ident, int, $xs:tt, $e:expr) => {
        $p.int = Some(rowwise!(i64, $xs, $e));
    };
    ($p:ident, real, $xs:tt, $e:expr) => {
        $p.f32 = Some(rowwise!(f32, $xs, $e));
        $p.f64 = Some(rowwise!(f64, $xs, $e));
    };
    ($p:ident, complex, $xs:tt, $e:expr) => {
        $p.c32 = Some(rowwise!(C32, $xs, $e));
        $p.c64 = Some(rowwise!(C64, $xs, $e));
    };
    ($p:ident, check, $xs:tt, $e:expr) => {
        $p.check = Some($e);
    };
}

/// Declares operators: `NAME(x, y) "what it is" { int: …, real: …, complex: … }`.
macro_rules! pointwise {
    ($($name:ident $xs:tt $doc:literal { $($group:ident: $e:expr),+ $(,)? })*) => {$(
        #[doc = $doc]
        pub static $name: $crate::pointwise::Pointwise = {
            let mut p = $crate::pointwise::Pointwise::NONE;
            $(group!(p, $group, $xs, $e);)+
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
            $(group!(p, $group, $xs, $e);)+
            p
        };
    )*};
}
