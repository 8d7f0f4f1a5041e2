//! Views as elements of another size: bits are constants, and what is written through them changes values and not the history.

use super::*;
use restride_ir::DType;

fn as_type(t: &Tensor, dtype: DType) -> Result<Tensor> {
    Tensor::call_one("aten.view.dtype", &[t.into(), Arg::DType(dtype)])
}

/// The gradient of the weighted sum of a base that was written as bits of a type.
fn left(dtype: DType, write: impl Fn(&Tensor) -> Result<Tensor>) -> Vec<f64> {
    let x = leaf(&[1.0; 6], &[2, 3]);
    let b = x.mul_number(1).unwrap();
    write(&as_type(&b, dtype).unwrap()).unwrap();
    assert!(numbers(&b).contains(&0.0));
    weighted(&b).unwrap().backward().unwrap();
    numbers(&x.grad().unwrap())
}

#[test]
fn written_bits_leave_the_history() {
    let all = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for how in [Saved::Regions, Saved::CloneOnWrite, Saved::Strict] {
        let _how = saved_tensors(how);
        // Smaller elements, in steps that are no whole cells too.
        assert_eq!(left(DType::I32, |v| v.slice(0, 0, 1)?.zero_()), all);
        assert_eq!(left(DType::I16, |v| v.slice(1, 0, 5)?.zero_()), all);
        assert_eq!(left(DType::I32, |v| v.restride(&[4], &[3], 0)?.zero_()), all);
        // The same size, floating or not.
        assert_eq!(left(DType::I64, |v| v.t()?.slice(0, 1, 2)?.fill_(0)), all);
        assert_eq!(left(DType::F64, |v| v.slice(0, 1, 2)?.zero_()), all);
    }
    // Larger ones, and the halves of complex numbers.
    let x = Tensor::from_slice(&[1.0f32; 4], &[4]).unwrap().requiring_grad().unwrap();
    let b = x.mul_number(1).unwrap();
    as_type(&b, DType::F64).unwrap().slice(0, 1, 2).unwrap().zero_().unwrap();
    b.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [1.0; 4]);
    let x = leaf(&[1.0, 2.0], &[2]);
    let z = Tensor::call_one("aten.complex.default", &[(&x).into(), (&x).into()]).unwrap().mul_number(1).unwrap();
    as_type(&z, DType::I32).unwrap().slice(0, 0, 2).unwrap().zero_().unwrap();
    weighted(&Tensor::call_one("aten.view_as_real.default", &[(&z).into()]).unwrap()).unwrap().backward().unwrap();
    assert_eq!(numbers(&x.grad().unwrap()), [3.0, 7.0]);
}

#[test]
fn bits_are_constants_and_not_views() {
    for how in [Saved::Regions, Saved::Strict] {
        let _how = saved_tensors(how);
        let x = leaf(&ramp(4, 1.0), &[4]);
        let v = as_type(&x, DType::F32).unwrap();
        assert!(!v.requires_grad() && v.base().is_none());
        // As in PyTorch, a leaf's bits may be written.
        as_type(&x, DType::I64).unwrap().slice(0, 0, 1).unwrap().zero_().unwrap();
        assert_eq!(numbers(&x)[0], 0.0);
        assert_eq!(x.version(), 1);
    }
}

#[test]
fn saved_values_are_guarded_against_bits() {
    let f = || {
        let x = leaf(&ramp(4, 1.0), &[4]);
        let y = x.exp()?;
        as_type(&y, DType::I32)?.slice(0, 7, 8)?.zero_()?;
        y.sum()?.backward()
    };
    for how in [Saved::Regions, Saved::Strict] {
        let _how = saved_tensors(how);
        refused(f(), VERSION);
    }
    let _how = saved_tensors(Saved::CloneOnWrite);
    f().unwrap();
}
