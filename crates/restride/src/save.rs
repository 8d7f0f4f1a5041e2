//! Writing programs back.

use crate::{CompileOptions, Compiled, OpenOptions, open};
use restride_exec::inputs::{Strides, bind};
use restride_exec::{Inputs, State};
use restride_ir::{Program, Result, Stage};
use restride_passes::ViewOptions;
use restride_passes::recompute::{Keep, Kept};
use restride_pt2::export::{export_bytes, export_file, export_file_with};
use restride_pt2::placed::{PlacedPiece, placed_files};
use std::path::Path;

/// Writes a program as a `.pt2` that `torch.export.load` takes, in the operators of [`written`].
///
/// ```
/// # use restride::{CompileOptions, Compiled, OpenOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let compiled = Compiled::new(program, None, &CompileOptions::default())?;
/// # let out = std::env::temp_dir().join(format!("restride-doc-save-{}.pt2", std::process::id()));
/// # let out = out.as_path();
/// restride::save(compiled.functional(), out)?;
/// let written = restride::open(out, &OpenOptions::default())?;
/// assert!(written.graph().ordered().all(|(_, n)| !n.op.mutates(&n.args)));
/// # std::fs::remove_file(out).expect("removed");
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A program that a `.pt2` cannot hold, a file that cannot be written.
pub fn save(program: &Program, path: &Path) -> Result<()> {
    export_file(&written(program)?, path)
}

/// As [`save`], into memory.
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let bytes = restride::Bytes::from_owner(restride::save_bytes(&program)?);
/// assert!(restride::open_bytes(&bytes, &OpenOptions::default()).is_ok());
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A program that a `.pt2` cannot hold.
pub fn save_bytes(program: &Program) -> Result<Vec<u8>> {
    export_bytes(&written(program)?)
}

/// The program in PyTorch's operators: a functional one reads and writes regions by views and scatters that take indices, as
/// PyTorch's functionalization does, and values that leave a `no_grad` region are detached.
///
/// ```
/// # use restride::{FunctionalizeOptions, OpenOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let functional = restride::functionalize(&program, &FunctionalizeOptions::default())?;
/// let written = restride::written(&functional)?;
/// assert!(written.graph().ordered().all(|(_, n)| !n.op.name().starts_with("restride.")));
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// An operator of restride's own that is composed otherwise for other sizes, where these are not known.
pub fn written(program: &Program) -> Result<Program> {
    let program = restride_passes::expand_own(program)?;
    let program = match program.stage {
        Stage::Functional => restride_passes::detached(restride_passes::nested(&program)?),
        Stage::Imported => program,
    };
    Ok(restride_passes::waits::awaited(program))
}

impl Compiled {
    /// Writes the functional program, with placement and plan for these inputs below `extra/`: `restride.plan.json` (tied to
    /// the program by the SHA-256 of its JSON) and `restride.placed.txt`. [`crate::saved_plan`] reads them.
    ///
    /// The plan is made for the program that is read back from the file, so that a reader finds the same program.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, Inputs, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
    /// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    /// # let out = std::env::temp_dir().join(format!("restride-doc-plan-{}.pt2", std::process::id()));
    /// # let out = out.as_path();
    /// compiled.save(&inputs, out)?;
    ///
    /// let options = OpenOptions::default();
    /// let saved = restride::saved_plan(out, &options)?.map(std::sync::Arc::new);
    /// let compile = CompileOptions { saved, ..CompileOptions::default() };
    /// Compiled::new(restride::open(out, &options)?, Some(&inputs), &compile)?.prepare(&inputs)?; // checks the plan, places nothing
    /// # std::fs::remove_file(out).expect("removed");
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`save`] and [`Compiled::prepare`].
    pub fn save(&self, inputs: &Inputs, path: &Path) -> Result<()> {
        let program = written(self.functional())?;
        export_file(&program, path)?;
        let options = CompileOptions { saved: None, fold: true, ahead: false, ..self.options().clone() };
        let written = Compiled::of_all_sizes(open(path, &OpenOptions::default())?, inputs, &options)?;
        let state = State::new(written.functional())?;
        let sizes = bind(written.functional(), inputs, &state, Strides::AsDeclared)?.symbols;
        let prepared = written.prepare(inputs)?;
        let pieces: Vec<PlacedPiece<'_>> = prepared
            .segments
            .iter()
            .map(|p| PlacedPiece {
                program: &p.program,
                placement: &p.placement,
                plan: &p.plan,
                sequence: p.sequence.as_deref(),
                groups: &p.groups,
            })
            .collect();
        export_file_with(&program, path, &placed_files(&program, &sizes, &pieces)?)
    }

    /// The joint program of forward and backward: one output of the functional program becomes the loss, and parameters and user
    /// inputs get gradients.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, GradOptions, Inputs, OpenOptions, RunOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/classifier.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let compiled = Compiled::new(program, None, &CompileOptions::default())?;
    /// let joint = compiled.grad(&GradOptions::default())?;
    /// let inputs = Inputs::from_samples(&joint).expect("the file has sample inputs")?;
    /// let mut instance = Compiled::new(joint, Some(&inputs), &CompileOptions::default())?.instance()?;
    /// let outputs = instance.run(&inputs, &RunOptions::default())?;
    /// for (input, gradient) in &outputs.gradients {
    ///     println!("gradient of input {input}: {:?}", gradient.layout().sizes);
    /// }
    /// # assert!(!outputs.gradients.is_empty());
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::grad`], and a result that is not sound.
    pub fn grad(&self, options: &crate::GradOptions) -> Result<Program> {
        self.sound(restride_passes::grad(self.functional(), options)?)
    }

    /// A training step: forward, backward and the update of every parameter as one program, in which parameters and what the
    /// optimizer keeps are updated. The update is one of PyTorch's ([`crate::Optimizer`]) or written with operators:
    ///
    /// ```
    /// use restride::{Adam, CompileOptions, Compiled, GradOptions, Inputs, OpenOptions, RunOptions};
    /// # fn main() -> restride::Result<()> {
    /// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/classifier.pt2");
    /// let forward = Compiled::new(restride::open(&path, &OpenOptions::default())?, None, &CompileOptions::default())?;
    /// let adam = Adam { lr: 0.01, ..Adam::default() };
    /// let step = forward.train(&GradOptions::default(), &|step, parameter| adam.update(step, parameter))?;
    ///
    /// let inputs = Inputs::from_samples(&step).expect("the file has sample inputs")?;
    /// let mut instance = Compiled::new(step, Some(&inputs), &CompileOptions::default())?.instance()?;
    /// let mut losses = Vec::new();
    /// for _ in 0..10 {
    ///     let outputs = instance.run(&inputs, &RunOptions::default())?;
    ///     losses.push(outputs.values[0].tensor().expect("the loss").get(&[]).as_f64());
    /// }
    /// assert!(losses[9] < losses[0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`crate::train`], and a result that is not sound.
    pub fn train(&self, options: &crate::GradOptions, update: &crate::Update<'_>) -> Result<Program> {
        self.sound(restride_passes::grad::train(self.functional(), options, update)?)
    }

    /// A training step of one of several ranks, each with a part of the batch. Gradients are averaged over the ranks before the
    /// update, in buckets.
    ///
    /// # Errors
    /// As [`crate::train_parallel`], and a result that is not sound.
    pub fn train_parallel(
        &self,
        options: &crate::GradOptions,
        parallel: &crate::DataParallel,
        update: &crate::Update<'_>,
    ) -> Result<Program> {
        self.sound(restride_passes::grad::train_parallel(self.functional(), options, parallel, update)?)
    }

    /// Chooses the forward values that backward keeps in a joint program of [`Compiled::grad`] or [`Compiled::train`] with these
    /// options, and rematerialises the others. Inputs tell symbolic sizes.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, GradOptions, Keep, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/classifier.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let compiled = Compiled::new(program, None, &CompileOptions::default())?;
    /// let options = GradOptions::default();
    /// let joint = compiled.grad(&options)?;
    /// let light = compiled.keep(&joint, &options, Keep::None, None)?.program;
    /// let arena = |p| Compiled::new(p, None, &CompileOptions::default())?.prepare(None).map(|p| p.report().plan.arena_bytes);
    /// assert!(arena(light)? < arena(joint)?);
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`restride_passes::recompute::keep`], and a result that is not sound.
    pub fn keep(
        &self,
        joint: &Program,
        options: &crate::GradOptions,
        keep: Keep,
        inputs: Option<&Inputs>,
    ) -> Result<Kept> {
        let sizes = inputs.map_or_else(|| Ok(restride_ir::Binding::new()), |i| crate::binding::sizes(joint, i))?;
        let forward = restride_passes::grad::forward_nodes(self.functional(), joint, options)?;
        let kept = restride_passes::recompute::keep(joint, forward, &sizes, keep)?;
        Ok(Kept { program: self.sound(kept.program)?, ..kept })
    }

    fn sound(&self, out: Program) -> Result<Program> {
        restride_ir::verify(&out)?;
        if self.options().check {
            restride_check::functional(&out).map_err(|f| restride_check::error(&out, &f))?;
        }
        Ok(out)
    }

    /// The program with in-place operators and views, as PyTorch has them.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, OpenOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/vit_small.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let compiled = Compiled::new(program, None, &CompileOptions::default())?;
    /// let program = compiled.reinplaced()?;
    /// assert!(program.graph().ordered().any(|(_, n)| n.op.mutates(&n.args)));
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// Memory that PyTorch's operators cannot express, with the node.
    pub fn reinplaced(&self) -> Result<Program> {
        let out = restride_passes::materialize(self.functional())?.0;
        restride_ir::verify(&out)?;
        Ok(out)
    }

    /// The view form, for compilers that take views: views instead of copies of views, no copies that change nothing and, by
    /// option, the operands of `cat` and `stack` computed in slices of the result.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, OpenOptions, ViewOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/vit_small.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let compiled = Compiled::new(program, None, &CompileOptions::default())?;
    /// let program = compiled.with_views(ViewOptions::default())?;
    /// assert!(program.graph().ordered().any(|(_, n)| n.op.is_view()));
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// A result that is not sound.
    pub fn with_views(&self, options: ViewOptions) -> Result<Program> {
        let out = restride_passes::views(self.functional(), options)?;
        match out.stage {
            Stage::Functional => self.sound(out),
            Stage::Imported => restride_ir::verify(&out).map(|()| out),
        }
    }
}
