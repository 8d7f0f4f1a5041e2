use super::ast::{AstKind, StmtKind};
use super::{parse, parse_expression, unescape};
use crate::source::SourceText;

#[test]
fn serialised_code_parses() {
    let text = "op_version_set = 1\nclass M(Module):\n  __parameters__ = [\"w\", ]\n  w : Tensor\n  __annotations__[\"0\"] = int\n  \
                def forward(self: __torch__.M,\n    x: Tensor,\n    k: int=2) -> Tensor:\n    a, b, = (self).f(x, )\n    if torch.gt(k, 1):\n      \
                y = annotate(List[int], [1, -2])[0:1]\n    else:\n      pass\n    while True:\n      break\n    return (a, {\"q\": -1.5e-05})\n";
    let parsed = parse(&SourceText::new("m.py", text)).unwrap();
    assert_eq!(parsed.len(), 2);
    let StmtKind::Class(class) = &parsed[1].kind else { panic!("{parsed:?}") };
    let StmtKind::Def(f) = &class.body[3].kind else { panic!("{class:?}") };
    assert_eq!((f.params.len(), f.body.len()), (3, 4));
    assert!(matches!(&f.body[1].kind, StmtKind::If(_, then, other) if then.len() == 1 && other.len() == 1));
}

#[test]
fn operators_bind_as_in_python() {
    let ast =
        parse_expression(&SourceText::new("e", "not -a ** 2 + b * c < d and x[1:, ..., None] is not None")).unwrap();
    let AstKind::Logic { and: true, left, .. } = ast.kind else { panic!("{ast:?}") };
    let AstKind::Unary("not_", inner) = left.kind else { panic!() };
    assert!(matches!(inner.kind, AstKind::Binary("lt", ..)));
}

#[test]
fn errors_name_the_line() {
    let e = parse(&SourceText::new("code/m.py", "def f(x):\n  return x +\n")).unwrap_err();
    assert_eq!(e.to_string(), "a value is expected, found the end of the line (at `return x +`, code/m.py:2)");
    let deep = format!("x = {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(parse(&SourceText::new("m", deep)).unwrap_err().what.contains("deep"));
    assert!(parse(&SourceText::new("m", format!("x{}", ".a".repeat(5000)))).is_err());
    assert!(parse(&SourceText::new("m", format!("x = {}1", "-".repeat(5000)))).is_err());
}

#[test]
fn strings_are_read() {
    assert_eq!(unescape(r#""a\n\"\303\274\x41""#).unwrap(), "a\n\"üA");
    assert_eq!(unescape("r'\\d'").unwrap(), "\\d");
    assert!(parse(&SourceText::new("m", "x = 'abc")).is_err());
}
