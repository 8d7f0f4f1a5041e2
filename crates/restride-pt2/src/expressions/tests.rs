use super::*;
use restride_ir::ExprFn;

/// Symbols without a range, and the inputs of guards as symbols.
struct Everything;

impl ExprNames for Everything {
    fn symbol(&self, name: &str, _positive: bool) -> Option<Expr> {
        Some(Expr::Sym(Symbol::new(name, None, None)))
    }

    fn input(&self, path: &[PathStep], property: InputProperty) -> Option<Expr> {
        let steps: Vec<String> = path
            .iter()
            .map(|step| match step {
                PathStep::Key(k) => k.clone(),
                PathStep::Index(n) => n.to_string(),
                PathStep::Attr(a) => format!(".{a}"),
            })
            .collect();
        let name = format!("{} {property:?}", steps.join(" "));
        Some(Expr::Sym(Symbol::new(name, None, None)))
    }
}

fn read(text: &str) -> String {
    parse(text, &Everything).unwrap().to_string()
}

#[test]
fn srepr_reads_back_as_it_is_written() {
    for text in [
        "Symbol('s77', positive=True, integer=True)",
        "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(-1))",
        "FloatTrueDiv(ToFloat(Symbol('s77', positive=True, integer=True)), Float('3.0', precision=53))",
        "FloorDiv(Mul(Integer(3), Symbol('s27', positive=True, integer=True)), Integer(2))",
        "GreaterThan(Symbol('u0', integer=True), Integer(0))",
        "Where(Equality(Symbol('u0', integer=True), Integer(0)), Integer(1), Integer(2))",
        "Mul(Symbol('zuf0'), Float('0.5', precision=53))",
        "Integer(-9223372036854775807)",
        "And(Unequality(Symbol('u0', integer=True), oo), LessThan(Symbol('u1', integer=True), -oo))",
        "Max(Symbol('u0', integer=True), PythonMod(Symbol('u1', integer=True), Integer(7)))",
    ] {
        let positive = |name: &str| (name.into(), Symbol::new(name, Some(2), None));
        let symbols: BTreeMap<Arc<str>, Symbol> = [positive("s77"), positive("s27")].into();
        assert_eq!(srepr(&parse(text, &symbols).unwrap()).unwrap(), text);
    }
}

#[test]
fn functions_have_one_meaning_each() {
    for f in ExprFn::ALL.into_iter().chain([ExprFn::BitOr]) {
        if let Some(name) = functions::written(f, false) {
            assert_eq!(functions::named(name).map(|n| n.0), Some(f));
        }
        if let Some(name) = python(f) {
            // Python's operators of truth values compute integers bit by bit.
            let said = match f {
                ExprFn::BitAnd => ExprFn::And,
                ExprFn::BitOr => ExprFn::Or,
                f => f,
            };
            assert_eq!(python_function(name), Some(said));
        }
    }
    assert_eq!(read("Piecewise(ExprCondPair(1, Eq(u0, 0)), ExprCondPair(2, true))"), "Where(Eq(u0, 0), 1, 2)");
    assert_eq!(read("CeilDiv(s0, 4)"), read("-((-s0) // 4)"));
    assert_eq!(read("Identity(s0)"), "s0");
    assert_eq!(read("OpaqueUnaryFn_sqrt(BitwiseFn_bitwise_and(Symbol('a'), Integer(7)))"), "Sqrt(BitAnd(a, 7))");
}

#[test]
fn keys_of_range_constraints() {
    assert_eq!(read("s77"), "s77");
    assert_eq!(read("2*s65"), "2*s65");
    assert_eq!(read("s0 + 1 - s1"), read("Add(s0, 1, Mul(-1, s1))"));
    assert_eq!(read("((s0*s1)//2)"), "FloorDiv(s0*s1, 2)");
    assert_eq!(read("s0**2"), "s0*s0");
    assert_eq!(read("-2**2"), "-4");
    assert_eq!(read("2**-1"), "0.5");
    assert_eq!(read("Max(1, -s0)"), read("Max(Integer(1), Mul(Integer(-1), Symbol('s0')))"));
    assert_eq!(read("s0/2"), "TrueDiv(s0, 2)");
    assert_eq!(read("(s0 < 3) & Ne(s1, 2)"), "And(Lt(s0, 3), Ne(s1, 2))");
    assert_eq!(read("~(s0 < 3) | (s1 > 2)"), "Or(Not(Lt(s0, 3)), Gt(s1, 2))");
    assert_eq!(read("1 <= s0 < 3"), "And(Le(1, s0), Lt(s0, 3))");
    assert_eq!(read(".5 + 1e2 + 2."), "102.5");
}

#[test]
fn guards_that_pytorch_writes() {
    assert_eq!(read("(L['x'].size()[0] % 2) == 0"), "Eq(Mod(x Size(0), 2), 0)");
    assert_eq!(read("torch.sym_max(L['y'].size()[0], L['x'].size()[1]) < 100"), "Lt(Max(x Size(1), y Size(0)), 100)");
    assert_eq!(read("24 <= 4*L['x']._base.size()[0]"), "Le(24, 4*x ._base Size(0))");
    assert_eq!(read("L['f'] == -math.inf and not L['b']"), "And(Eq(f Value, -inf), Not(b Value))");
    assert_eq!(read("(1 if L['n'] > 2 else 0) == 1"), "Eq(Where(Gt(n Value, 2), 1, 0), 1)");
    assert_eq!(read("L['b'] == True"), "Eq(b Value, True)");
    assert_eq!(read("L['n'] & 3 | 4"), "BitOr(BitAnd(n Value, 3), 4)");
    assert_eq!(read("L['xs'][1].size()[-1]"), "xs 1 Size(-1)");
    assert_eq!(read("L['d']['a'].size(2)"), "d a Size(2)");
    assert_eq!(read("L['x'].shape[2]"), "x Size(2)");
    assert_eq!(read("(L['x']).ndim + L['x'].dim()"), "2*x Rank");
    assert_eq!(read("L['x'].numel()"), "x Numel");
}

#[test]
fn unknown_forms_are_errors_with_their_place() {
    for text in [
        "",
        "(((",
        "Foo(Integer(1))",
        "Symbol(1)",
        "Symbol('a', positive=3)",
        "Integer('1')",
        "Float(1)",
        "Float('abc')",
        "Pow(Integer(1))",
        "Add(Integer(1), x=True)",
        "Integer(99999999999999999999)",
        "'s0'",
        "f(1)(2)",
        "__import__('os').system('x')",
        "L['x']._base",
        "L['x'].dtype == torch.float32",
        "L['x'].item() > 3",
        "L['x'].stride()[0] > 3",
        "L['x'].size()[L['n']] > 2",
        "L['x'] is None",
        "lambda: 0",
        "max() == 1",
        "math.isnan(L['g'])",
        "1 ^ 2",
        "~s0",
        "1.2.3",
        "ExprCondPair(1, true)",
        "Piecewise(1)",
    ] {
        let e = parse(text, &Everything).unwrap_err().to_string();
        assert!(e.starts_with(&format!("symbolic expression {text}, column ")), "{e}");
    }
    assert_eq!(
        parse("s0 + Foo(1) * 2", &Everything).unwrap_err().to_string(),
        "symbolic expression s0 + Foo(1) * 2, column 13: unsupported function Foo"
    );
    assert!(parse("L['x']", &BTreeMap::new()).is_err());
}

#[test]
fn deep_and_cut_text_never_panics() {
    for (open, close) in [("Not(", ")"), ("(", ")"), ("-", ""), ("1 + ", ""), ("not ", ""), ("L['x']['y']", "")] {
        let deep = format!("{}1{}", open.repeat(5000), close.repeat(5000));
        assert!(parse(&deep, &Everything).is_err(), "{open}");
    }
    for text in [
        "Add(Mul(Integer(2), Symbol('s77', positive=True)), Float('3.0', precision=53))",
        "(L['x'].size()[0] % 2) == 0 and not L['y'][0].dim() < 1.5e3 if L['é'] else 2",
    ] {
        for (n, _) in text.char_indices() {
            let _ = parse(&text[..n], &Everything);
        }
    }
}
