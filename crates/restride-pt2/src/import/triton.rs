//! Triton kernels: `triton_kernel_wrapper_functional` and `triton_kernel_wrapper_mutation`.
//!
//! A file names the kernel, its arguments and those that it mutates. The importer registers a custom operator of that schema in
//! the namespace `triton`; launch options become arguments whose names begin with `launch_`. The functional form is expanded as
//! PyTorch runs it: the kernel on clones, with the original strides, of the mutated arguments.

use super::damaged;
use super::nodes::GraphImporter;
use crate::model::{self, Argument, ArgumentKind};
use restride_ir::{Arg, Error, Origin, Result, ValueId};
use std::fmt::Write;
use std::sync::Arc;

/// The namespace of kernels as operators.
pub(crate) const NAMESPACE: &str = "triton";
/// Prefix of the names of launch options.
pub(crate) const LAUNCH: &str = "launch_";
/// The keyword with the kernel's name.
pub(crate) const NAME: &str = "name";
/// The keyword with the positions of the mutated arguments.
pub(crate) const WRITTEN: &str = "output_indices";

fn is_identifier(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// The schema type of an argument that is only read.
fn read_type(arg: &Argument) -> Result<&'static str> {
    Ok(match arg {
        Argument::AsTensor(_) => "Tensor",
        Argument::AsNone(_) => "Tensor?",
        Argument::AsInt(_) | Argument::AsSymInt(_) => "int",
        Argument::AsFloat(_) | Argument::AsSymFloat(_) => "float",
        Argument::AsBool(_) | Argument::AsSymBool(_) => "bool",
        Argument::AsString(_) => "str",
        Argument::AsInts(_) | Argument::AsSymInts(_) => "int[]",
        Argument::AsStrings(_) => "str[]",
        _ => {
            return Err(Error::unsupported(
                "an argument of a triton kernel that is neither a tensor, a number nor a string",
            ));
        }
    })
}

impl GraphImporter<'_> {
    /// Reads a launch; if `functional`, on clones of the mutated arguments, which the node returns.
    pub(super) fn triton(
        &mut self,
        source: &model::FileGraph,
        node: &model::FileNode,
        origin: Origin,
        functional: bool,
    ) -> Result<()> {
        let origin = Arc::new(origin);
        let is_keyword = |i: &&model::NamedArgument| i.kind == Some(ArgumentKind::Keyword);
        let keyword = |name: &str| node.inputs.iter().filter(is_keyword).find(|i| i.name == name).map(|i| &i.arg);
        let Some(Argument::AsString(kernel)) = keyword(NAME) else {
            return Err(damaged("a triton kernel without a name"));
        };
        let given: Vec<&model::NamedArgument> = node.inputs.iter().filter(|i| !is_keyword(i)).collect();
        let written: Vec<usize> = match keyword(WRITTEN) {
            Some(Argument::AsInts(list)) => list.iter().map(|i| usize::try_from(*i).unwrap_or(usize::MAX)).collect(),
            _ => return Err(damaged(format!("the triton kernel {kernel} does not declare what it mutates"))),
        };
        if written.iter().any(|i| *i >= given.len()) || written.windows(2).any(|w| w[0] >= w[1]) {
            return Err(damaged(format!("the triton kernel {kernel} mutates arguments that it does not have")));
        }
        let mut params = String::new();
        let mut args = Vec::with_capacity(node.inputs.len());
        let mut contents: Vec<ValueId> = Vec::new();
        for (i, input) in given.iter().enumerate() {
            if !is_identifier(&input.name) || input.name.starts_with(LAUNCH) {
                return Err(Error::unsupported(format!("the triton kernel {kernel} has an argument {:?}", input.name)));
            }
            let separator = if i == 0 { "" } else { ", " };
            let ty = read_type(&input.arg)?;
            if !written.contains(&i) {
                let _ = write!(params, "{separator}{ty} {}", input.name);
                args.push(self.arg(&input.arg, None)?);
                continue;
            }
            let Argument::AsTensor(t) = &input.arg else {
                return Err(damaged(format!(
                    "the triton kernel {kernel} writes {}, which is not a tensor",
                    input.name
                )));
            };
            let v = self.value(&t.name)?;
            let v = if functional { self.clone_as_laid(v, &origin)? } else { v };
            contents.push(v);
            let _ = write!(params, "{separator}Tensor({}!) {}", set(contents.len()), input.name);
            args.push(Arg::Value(v));
        }
        let options = node.inputs.iter().filter(is_keyword).filter(|i| i.name != NAME && i.name != WRITTEN);
        for (i, option) in options.enumerate() {
            let separator = match (i, args.is_empty()) {
                (0, true) => "*, ",
                (0, false) => ", *, ",
                _ => ", ",
            };
            if !is_identifier(&option.name) {
                return Err(Error::unsupported(format!("the triton kernel {kernel} has an option {:?}", option.name)));
            }
            let _ = write!(params, "{separator}{} {LAUNCH}{}", read_type(&option.arg)?, option.name);
            args.push(self.arg(&option.arg, None)?);
        }
        if !is_identifier(kernel) {
            return Err(Error::unsupported(format!("a triton kernel called {kernel:?}")));
        }
        // Launches may differ in argument types: each list of types is an overload.
        let overload = crc32fast::hash(params.as_bytes());
        let schema = format!("{NAMESPACE}::{kernel}.v{overload:08x}({params}) -> ()");
        let op = restride_ops::register_custom(&schema).map_err(|e| damaged(e.0))?;
        self.add(op, args, Vec::new(), origin);
        if !functional {
            return Ok(());
        }
        let names: Vec<&str> = match &node.outputs[..] {
            [one] => one.tensor_names(),
            _ => Vec::new(),
        };
        if names.len() != contents.len() || names.iter().any(|n| !source.tensor_values.contains_key(*n)) {
            return Err(damaged(format!("{} results of a triton kernel that writes {}", names.len(), contents.len())));
        }
        for (name, v) in names.into_iter().zip(contents) {
            self.bind(name.to_string(), v);
        }
        Ok(())
    }
}

/// The name of the `n`-th alias set, from 1 on: letters.
fn set(mut n: usize) -> String {
    let mut out = String::new();
    while n > 0 {
        n -= 1;
        out.insert(0, char::from(b'a' + (n % 26) as u8));
        n /= 26;
    }
    out
}
