//! `im2col` and `col2im`: sliding windows as columns of a matrix, and their sum back into an image.

use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Args, Call, DType, Meta, OpDef};
use restride_kernels::conv::window::{self, Window};

/// Checked geometry of the windows.
struct FoldArgs {
    kernel: restride_ir::Ints,
    dilation: restride_ir::Ints,
    pad: restride_ir::Ints,
    stride: restride_ir::Ints,
}

impl FoldArgs {
    /// Reads the four lists that start at argument `at`.
    fn read<V>(a: &Args<'_, V>, at: usize) -> Result<FoldArgs> {
        let list = |i: usize, what: &str| -> Result<restride_ir::Ints> {
            let v = a.ints(i)?;
            ensure!(v.len() == 2, "It is expected {what} equals to 2, but got size {}", v.len());
            spread(a, i, 2, what)
        };
        let f = FoldArgs {
            kernel: list(at, "kernel_size")?,
            dilation: list(at + 1, "dilation")?,
            pad: list(at + 2, "padding")?,
            stride: list(at + 3, "stride")?,
        };
        for (v, what, least) in
            [(&f.kernel, "kernel", 1), (&f.dilation, "dilation", 1), (&f.pad, "padding", 0), (&f.stride, "stride", 1)]
        {
            ensure!(
                v.iter().all(|&x| x >= least),
                "{what} should be {}, but got {v:?}",
                if least > 0 { "greater than zero" } else { "non-negative" }
            );
        }
        Ok(f)
    }
    /// Number of windows in each dimension.
    fn windows(&self, image: &[i64]) -> Result<[i64; 2]> {
        let mut out = [0; 2];
        for d in 0..2 {
            let reach = self.dilation[d] * (self.kernel[d] - 1) + 1;
            let n = (image[d] + 2 * self.pad[d] - reach).div_euclid(self.stride[d]) + 1;
            ensure!(
                n >= 1,
                "Given input with spatial size {image:?}, kernel_size={:?}, dilation={:?}, padding={:?}, calculated shape of the array of sliding blocks has a size of {n} in dimension {d}, which is too small (non-positive).",
                self.kernel,
                self.dilation,
                self.pad
            );
            out[d] = n;
        }
        Ok(out)
    }
    fn window(&self, image: &[i64], windows: &[i64]) -> Window {
        Window::new(image, &self.kernel, windows, &self.stride, &self.pad, &self.dilation)
    }
    fn taps(&self) -> i64 {
        self.kernel.iter().product()
    }
}

fn im2col_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, f) = (a.tensor(0)?, FoldArgs::read(a, 1)?);
    let batched = x.rank() == 4;
    let valid = (x.rank() == 3 || batched) && x.sizes()[batched as usize..].iter().all(|&n| n > 0);
    ensure!(
        valid,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {:?}",
        x.sizes()
    );
    ensure!(
        x.dtype.is_float() || x.dtype.is_complex() || x.dtype == DType::Bool,
        "\"im2col_out_cpu\" not implemented for '{}'",
        name(x.dtype)
    );
    let lead = x.rank() - 3;
    let windows = f.windows(&x.sizes()[lead + 1..])?;
    let mut out = x.sizes()[..lead].to_vec();
    out.extend([x.sizes()[lead] * f.taps(), windows.iter().product()]);
    one(fresh(x.dtype, &out))
}

fn im2col(c: &Call<'_>) -> Result<()> {
    let f = FoldArgs::read(&c.args, 1)?;
    let sizes = c.args.tensor(0)?.sizes();
    let image = &sizes[sizes.len() - 2..];
    let w = f.window(image, &f.windows(image)?);
    ran(window::im2col(c.args.tensor(0)?, &w, &c.outs[0]))
}

fn col2im_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, out, f) = (a.tensor(0)?, spread(a, 1, 2, "output_size")?, FoldArgs::read(a, 2)?);
    ensure!(out.iter().all(|&n| n > 0), "output_size should be greater than zero, but got {out:?}");
    let batched = x.rank() == 3;
    let valid = (x.rank() == 2 || batched) && x.sizes()[batched as usize..].iter().all(|&n| n > 0);
    ensure!(
        valid,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {:?}",
        x.sizes()
    );
    ensure!(
        x.dtype.is_float() || x.dtype.is_complex() || x.dtype == DType::Bool,
        "\"col2im_out_cpu\" not implemented for '{}'",
        name(x.dtype)
    );
    let lead = x.rank() - 2;
    let (rows, cols) = (x.sizes()[lead], x.sizes()[lead + 1]);
    ensure!(
        rows % f.taps() == 0,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} and kernel_size={:?}.",
        f.kernel
    );
    let windows = f.windows(&out)?;
    ensure!(
        windows.iter().product::<i64>() == cols,
        "Given output_size={out:?}, kernel_size={:?}, dilation={:?}, padding={:?}, stride={:?}, expected size of input's dimension 2 to match the calculated number of sliding blocks {} * {} = {}, but got input.size(2)={cols}.",
        f.kernel,
        f.dilation,
        f.pad,
        f.stride,
        windows[0],
        windows[1],
        windows.iter().product::<i64>()
    );
    let mut sizes = x.sizes()[..lead].to_vec();
    sizes.push(rows / f.taps());
    sizes.extend(out);
    one(fresh(x.dtype, &sizes))
}

fn col2im(c: &Call<'_>) -> Result<()> {
    let (out, f) = (spread(&c.args, 1, 2, "output_size")?, FoldArgs::read(&c.args, 2)?);
    let w = f.window(&out, &f.windows(&out)?);
    ran(window::col2im(c.args.tensor(0)?, &w, &c.outs[0]))
}

pub(crate) static OPS: &[OpDef] = table![
    exact("im2col", im2col_infer, im2col, crate::support::scratch::packed, samples!(im2col_samples)),
    close("col2im", col2im_infer, col2im, crate::support::scratch::packed, samples!(col2im_samples)),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn im2col_samples() -> Samples {
        let d = DType::F32;
        let shape = &[2, 3, 5, 6];
        let mut out: Samples =
            forms(d, shape, 1).into_iter().map(|x| sample![x, [2, 3], [1, 1], [0, 0], [1, 1]]).collect();
        out.extend([
            sample![nhwc(d, shape, 1), [3, 3], [1, 1], [1, 1], [2, 1]],
            sample![tensor(d, shape, 1), [2, 2], [2, 3], [1, 2], [2, 2]],
            sample![tensor(d, &[3, 5, 6], 1), [2, 2], [1, 1], [0, 1], [2, 2]],
            sample![tensor(d, &[0, 3, 5, 6], 1), [2, 2], [1, 1], [0, 1], [2, 2]],
            sample![tensor(d, &[2, 0, 5, 6], 1), [2, 2], [1, 1], [0, 1], [2, 2]],
            sample![tensor(d, shape, 1), [7, 2], [1, 1], [0, 0], [1, 1]],
            sample![tensor(d, shape, 1), [2, 2], [1, 1], [0, 0], [0, 1]],
            sample![tensor(d, shape, 1), [2, 2], [1, 1], [-1, 0], [1, 1]],
        ]);
        out.extend(
            [DType::F64, DType::BF16, DType::Bool, DType::C64, DType::I64]
                .map(|d| sample![tensor(d, shape, 1), [2, 2], [1, 1], [1, 1], [1, 1]]),
        );
        out
    }

    pub(crate) fn col2im_samples() -> Samples {
        let d = DType::F32;
        let shape = &[2, 12, 12];
        let mut out: Samples =
            forms(d, shape, 1).into_iter().map(|x| sample![x, [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]]).collect();
        out.extend([
            sample![tensor(d, &[2, 12, 9], 1), [5, 6], [2, 2], [2, 1], [1, 0], [2, 2]],
            sample![tensor(d, &[12, 12], 1), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]],
            sample![tensor(d, &[0, 12, 12], 1), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]],
            sample![tensor(d, &[2, 12, 11], 1), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]],
            sample![tensor(d, &[2, 11, 12], 1), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]],
        ]);
        out.extend(
            [DType::F64, DType::C64, DType::I64]
                .map(|d| sample![tensor(d, shape, 1), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]]),
        );
        out
    }
}
