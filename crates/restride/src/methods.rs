//! Several programs of one archive over one state: `prefill` and `decode`, say.

use crate::compile::{CompileOptions, Compiled};
use crate::constants::HeldConstants;
use crate::instance::Instance;
use crate::open::{OpenOptions, models, open};
use restride_exec::interp::{Outputs, RunOptions};
use restride_exec::run::ByteArena;
use restride_exec::{Inputs, State};
use restride_ir::{Error, ErrorKind, Result};
use restride_tensor::{RawTensor, Storage};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Programs that share one arena, and parameters and buffers by name, as the methods of one module do: the next program reads the
/// buffers that one writes.
///
/// ```
/// use restride::{CompileOptions, Inputs, Methods, OpenOptions, RunOptions};
/// # fn main() -> restride::Result<()> {
/// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pt2/prefill_decode.pt2");
/// let mut methods = Methods::open(&path, &OpenOptions::default(), &CompileOptions::default())?;
/// # let samples = |m: &Methods, name: &str| Inputs::from_samples(m.compiled(name).expect("a method").functional()).expect("samples");
/// let prompt = samples(&methods, "prefill")?;
/// methods.run("prefill", &prompt, &RunOptions::default())?; // writes the key-value cache
/// let token = samples(&methods, "decode")?;
/// let outputs = methods.run("decode", &token, &RunOptions::default())?; // reads it, and writes one position
/// # assert!(outputs.values[0].tensor().is_some());
/// # Ok(())
/// # }
/// ```
pub struct Methods {
    compiled: BTreeMap<String, Compiled>,
    state: State,
    arena: ByteArena,
    constants: HeldConstants,
    runs: u64,
}

impl Methods {
    /// Opens and compiles every model of an archive.
    ///
    /// # Errors
    /// As [`open`], [`Compiled::new`] and [`Methods::new`].
    pub fn open(path: &Path, how: &OpenOptions, options: &CompileOptions) -> Result<Methods> {
        let compile = |name: String| {
            let program = open(path, &OpenOptions { model: Some(name.clone()), ..how.clone() })?;
            let samples = Inputs::from_samples(&program).transpose()?;
            Ok((name, Compiled::new(program, samples.as_ref(), options)?))
        };
        Methods::new(models(path, how)?.into_iter().map(compile).collect::<Result<_>>()?)
    }

    /// Programs under their names, over one state: that of the first program, with the tensors that only later ones have.
    ///
    /// # Errors
    /// A tensor of the state that two programs have under one name in different types, sizes, strides or storages, or with
    /// different contents.
    pub fn new(programs: Vec<(String, Compiled)>) -> Result<Methods> {
        let mut state = State::default();
        for (method, compiled) in &programs {
            share(&mut state, &State::new(compiled.functional())?, method)?;
        }
        let compiled = programs.into_iter().collect();
        Ok(Methods { compiled, state, arena: ByteArena::default(), constants: HeldConstants::default(), runs: 0 })
    }

    /// The names of the programs, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.compiled.keys().map(String::as_str)
    }

    /// One of the programs.
    pub fn compiled(&self, method: &str) -> Option<&Compiled> {
        self.compiled.get(method)
    }

    /// Runs one of the programs, as [`Instance::run`].
    ///
    /// # Errors
    /// A name that no program has; as [`Instance::run`].
    pub fn run(&mut self, method: &str, inputs: &Inputs, options: &RunOptions) -> Result<Outputs> {
        let Some(compiled) = self.compiled.get(method) else {
            let have = self.names().collect::<Vec<_>>().join(", ");
            let what = format!("no program is called {method}; the archive has {have}");
            return Err(Error::new(ErrorKind::Inputs, what));
        };
        let (state, arena) = (std::mem::take(&mut self.state), std::mem::take(&mut self.arena));
        let constants = std::mem::take(&mut self.constants);
        let mut instance = Instance::from_parts((compiled.clone(), state, arena, constants, self.runs, None));
        let outputs = instance.run(inputs, options);
        (_, self.state, self.arena, self.constants, self.runs, _) = instance.into_parts();
        outputs
    }

    /// Parameters, buffers and constants as they are now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Goes on from another state, such as one saved before.
    pub fn set_state(&mut self, state: State) {
        self.state = state;
    }

    /// Bytes of the arena: the most that a program has needed so far.
    pub fn arena_bytes(&self) -> i64 {
        self.arena.bytes() as i64
    }
}

/// Adds a program's state. A tensor whose name is known already becomes the known one, and tensors on its storage move to the
/// known storage.
fn share(all: &mut State, own: &State, method: &str) -> Result<()> {
    let refuse = |name: &str, why: &str| {
        let what = format!("{method} and another program of the archive have {name}, {why}");
        Err(Error::unsupported(what).help("export the programs from one module, or open them one by one"))
    };
    // By the program's own storage, the one that stands for it here.
    let mut storages: BTreeMap<usize, Storage> = BTreeMap::new();
    for (name, tensor) in own.iter() {
        let Some(there) = all.get(name) else { continue };
        if there.dtype() != tensor.dtype() || there.layout() != tensor.layout() {
            return refuse(name, "in different types, sizes or strides");
        }
        match storages.get(&tensor.storage().id()) {
            Some(known) if !known.same(there.storage()) => {
                return refuse(name, "which shares its memory with other tensors in one of them only");
            }
            Some(_) => {}
            None => {
                if there.storage().len() != tensor.storage().len()
                    || there.storage().to_vec() != tensor.storage().to_vec()
                {
                    return refuse(name, "with different contents");
                }
                storages.insert(tensor.storage().id(), there.storage().clone());
            }
        }
    }
    for (name, tensor) in own.iter() {
        if all.get(name).is_some() {
            continue;
        }
        let shared = storages.get(&tensor.storage().id()).cloned().unwrap_or_else(|| tensor.storage().clone());
        let tensor = RawTensor::new(shared, tensor.dtype(), tensor.layout().clone())
            .ok_or_else(|| Error::invalid(format!("weight {name} leaves its storage")))?;
        all.set(Arc::clone(name), tensor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;

    fn program(text: &str) -> Compiled {
        let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
        Compiled::new(program, None, &CompileOptions::default()).expect("it compiles")
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let one = program("graph(%x: f32[2]) {\n  %y: f32[2] = aten.neg.default(%x)\n  return %y\n}\n");
        let mut methods = Methods::new(vec![("one".into(), one)]).expect("no state");
        let error = methods.run("two", &Inputs::default(), &RunOptions::default()).expect_err("no such program");
        assert_eq!(error.what, "no program is called two; the archive has one");
    }
}
