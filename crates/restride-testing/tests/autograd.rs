//! Programs with in-place operators on views (`scripts/make/autograd_scenarios.py`): functional and placed gradients
//! against differences of the exported program with true aliasing. Eager PyTorch refuses some of them.

use restride::{CompileOptions, Compiled, GradOptions, Inputs, OpenOptions, RunOptions, State};
use restride_testing::finite_differences::against;
use restride_testing::rng::Rng;
use restride_testing::scenarios::{given, loss, programs, tensors};
use std::path::Path;

/// Programs whose gradient is not the derivative of what they compute, and why.
const EXCEPT: &[(&str, &str)] = &[
    ("detach_mut_saved", "PyTorch refuses it: a saved value is overwritten through a detached tensor"),
    ("foreach_mut_saved_nograd", "PyTorch refuses it: a saved value is overwritten under `no_grad`"),
    ("grad_of_view_grad_enabled", "a write under `no_grad` changes values, not the gradient"),
    ("nograd_view_nograd_mut_then_use", "a write under `no_grad` changes values, not the gradient"),
];

fn check(path: &Path) -> Result<(), String> {
    let say = |e: restride::Error| e.to_string();
    let program = restride::open(path, &OpenOptions::default()).map_err(say)?;
    let inputs = Inputs::from_samples(&program).ok_or("no inputs")?.map_err(say)?;
    let tensors = tensors(&inputs);
    let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).map_err(say)?;
    let joint = compiled.grad(&GradOptions::default()).map_err(say)?;
    let users: Vec<usize> = restride::user_inputs(&joint).map(|(i, _)| i).collect();
    let placed = Compiled::new(joint, Some(&inputs), &CompileOptions::default()).map_err(say)?;
    let out = placed.instance().map_err(say)?.run(&given(&tensors), &RunOptions::default()).map_err(say)?;
    let own = |i: usize| users.iter().position(|u| *u == i).ok_or("a gradient of no user input");
    let gradients = out.gradients.into_iter().map(|(i, g)| Ok((own(i)?, g))).collect::<Result<Vec<_>, &str>>()?;
    against(|at| loss(&program, at), &tensors, &gradients, 1e-6, &mut Rng::new(1))
}

#[test]
fn gradients_of_programs_that_write_through_views() {
    let programs = programs();
    assert!(programs.len() > 40, "{}", programs.len());
    let mut found = Vec::new();
    for path in &programs {
        let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let excepted = EXCEPT.iter().any(|(n, _)| *n == name);
        match check(path) {
            Ok(()) if excepted => found.push(format!("{name}: the gradient is right, and excepted")),
            Ok(()) => {}
            Err(_) if excepted => {}
            Err(why) => found.push(format!("{name}: {why}")),
        }
    }
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), programs.len(), found.join("\n"));
}

/// What a functional program has of regions without gradients and of writes is in its file as well.
#[test]
fn functional_programs_are_differentiated_from_files_too() {
    let folder = std::env::temp_dir().join(format!("restride-autograd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut marked = 0;
    for path in programs() {
        let program = restride::open(&path, &OpenOptions::default()).expect("the program");
        let inputs = Inputs::from_samples(&program).expect("inputs").expect("inputs");
        let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
        marked += usize::from(compiled.functional().graph().ordered().any(|(_, n)| n.origin.no_grad));
        let file = folder.join("functional.pt2");
        if restride::save(compiled.functional(), &file).is_err() {
            // What a file has no words for.
            continue;
        }
        let read = restride::open(&file, &OpenOptions::default()).expect("what was written");
        let again = Compiled::new(read, Some(&inputs), &CompileOptions::default()).expect("compiles");
        let gradients = |c: &Compiled| -> Result<Vec<Vec<f64>>, String> {
            let joint = c.grad(&GradOptions::default()).map_err(|e| e.what)?;
            let mut state = State::new(&joint).expect("a state");
            let out = restride::interpret(&joint, &inputs.deep_clone(), &mut state, &RunOptions::default());
            Ok(out.expect("runs").gradients.iter().map(|(_, t)| t.to_elements::<f64>()).collect())
        };
        assert_eq!(gradients(&compiled), gradients(&again), "{}", path.display());
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(marked > 0);
}
