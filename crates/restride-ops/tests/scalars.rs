//! Arithmetic on numbers outside of tensors.

use crate::run::{fitted, on_views};
use restride_ir::{Arg, Ctx, Kernel, SampleArg, Scalar};
use restride_ops::lookup;

fn number(name: &str, args: &[Scalar]) -> Result<Scalar, String> {
    let args: Vec<SampleArg> = args.iter().map(|s| Arg::Scalar(*s)).collect();
    let Kernel::Scalar(kernel) = lookup(name).unwrap().def().kernel else { panic!("{name} gives no number") };
    on_views(&args, &[], |args, outs| kernel(&fitted(args, outs, &Ctx::default()))).map_err(|e| e.0)
}

#[test]
fn arithmetic_is_pythons() {
    use Scalar::{Bool, Float, Int};
    let ok = |name: &str, args: &[Scalar], want: Scalar| assert_eq!(number(name, args), Ok(want), "{name} {args:?}");
    ok("_operator.floordiv", &[Int(-7), Int(2)], Int(-4));
    ok("_operator.mod", &[Int(-7), Int(2)], Int(1));
    ok("_operator.mod", &[Int(i64::MIN), Int(-1)], Int(0));
    ok("_operator.mod", &[Float(-7.5), Int(2)], Float(0.5));
    ok("_operator.truediv", &[Int(7), Int(2)], Float(3.5));
    ok("_operator.pow", &[Int(2), Int(-1)], Float(0.5));
    ok("_operator.pow", &[Int(-1), Int(i64::MAX)], Int(-1));
    ok("_operator.eq", &[Int(9_007_199_254_740_993), Float(9_007_199_254_740_992.0)], Bool(false));
    ok("_operator.lt", &[Int(i64::MAX), Float(9_223_372_036_854_775_808.0)], Bool(true));
    ok("_operator.le", &[Int(1), Float(f64::NAN)], Bool(false));
    ok("torch.sym_min", &[Int(3), Float(3.5)], Float(3.0));
    ok("torch.sym_max", &[Int(3), Int(5)], Int(5));
    ok("torch.sym_ite", &[Bool(false), Int(3), Int(5)], Int(5));
    ok("math.ceil", &[Float(2.1)], Int(3));
    ok("_operator.and_", &[Bool(true), Bool(false)], Bool(false));
}

#[test]
fn what_python_refuses_is_an_error() {
    use Scalar::{Float, Int};
    for (name, args) in [
        ("_operator.floordiv", [Int(1), Int(0)]),
        ("_operator.mod", [Int(1), Float(0.0)]),
        ("_operator.truediv", [Int(1), Int(0)]),
        ("_operator.pow", [Int(0), Int(-1)]),
        ("_operator.add", [Int(i64::MAX), Int(1)]),
        ("_operator.floordiv", [Int(i64::MIN), Int(-1)]),
    ] {
        assert!(number(name, &args).is_err(), "{name}");
    }
    assert!(number("math.trunc", &[Float(f64::INFINITY)]).is_err());
}
