//! Gradients on the eager tape: reads lines of a way to guard what is saved (`strict`, `regions` or `clone`) and the file of an
//! exported program with sample inputs, and answers each with a line of JSON: the gradient of its first output by each floating
//! input, or what the tape says. `scripts/check/random_grad_check.py` holds them against PyTorch's.

use restride::{Inputs, OpenOptions};
use restride_exec::eager::{Saved, saved_tensors};
use restride_tensor::RawTensor;
use restride_testing::scenarios::{given, tensors};
use restride_testing::tape_run::{numbers, taped};
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = match answer(&line?) {
            Ok(gradients) => json!({ "gradients": gradients }),
            Err(why) => json!({ "error": why }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<Vec<Value>, String> {
    let (how, path) = line.split_once(' ').ok_or("a line is a way and a file")?;
    let how = match how {
        "strict" => Saved::Strict,
        "regions" => Saved::Regions,
        "clone" => Saved::CloneOnWrite,
        _ => return Err(format!("{how} is none of strict, regions and clone")),
    };
    let program = restride::open(Path::new(path), &OpenOptions::default()).map_err(|e| e.to_string())?;
    let inputs = Inputs::from_samples(&program).ok_or("no inputs")?.map_err(|e| e.to_string())?;
    let _how = saved_tensors(how);
    let run = taped(&program, &given(&tensors(&inputs)), true)?;
    let one = RawTensor::from_slice(&[1.0f64], &[]);
    let gradients = run.gradients(&[(0, one)])?;
    Ok(gradients.iter().map(|(_, g)| json!(numbers(g))).collect())
}
