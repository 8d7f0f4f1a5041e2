//! The optimizer that the options of `grad` name, and the ranks that train with it.

use crate::Failure;
use crate::args::{OptimizerArg, OptimizerArgs};
use restride::{Adam, DataParallel, Optimizer, Sgd, Shard};
use std::path::{Path, PathBuf};

/// The optimizer, if one is named.
///
/// # Errors
/// An option of the other optimizer.
pub fn chosen(args: &OptimizerArgs) -> Result<Option<Optimizer>, Failure> {
    let foreign = |name: &str, given: &[(&str, bool)]| match given.iter().find(|(_, there)| *there) {
        Some((option, _)) => {
            Err(Failure::Usage(format!("{option} is no option of --optimizer {name}"), "leave it out".into()))
        }
        None => Ok(()),
    };
    Ok(match args.optimizer {
        None => None,
        Some(OptimizerArg::Sgd) => {
            foreign(
                "sgd",
                &[
                    ("--betas", args.betas.is_some()),
                    ("--eps", args.eps.is_some()),
                    ("--amsgrad", args.amsgrad),
                    ("--decoupled-weight-decay", args.decoupled_weight_decay),
                ],
            )?;
            let own = Sgd::default();
            Some(Optimizer::Sgd(Sgd {
                lr: args.lr.unwrap_or(own.lr),
                momentum: args.momentum.unwrap_or(own.momentum),
                dampening: args.dampening.unwrap_or(own.dampening),
                weight_decay: args.weight_decay.unwrap_or(own.weight_decay),
                nesterov: args.nesterov,
                maximize: args.maximize,
            }))
        }
        Some(OptimizerArg::Adam) => {
            let sgd = [
                ("--momentum", args.momentum.is_some()),
                ("--dampening", args.dampening.is_some()),
                ("--nesterov", args.nesterov),
            ];
            foreign("adam", &sgd)?;
            let own = Adam::default();
            let betas = match args.betas.as_deref() {
                None => own.betas,
                Some([first, second]) => (*first, *second),
                Some(_) => {
                    return Err(Failure::Usage("--betas takes two numbers".into(), "as in --betas 0.9,0.999".into()));
                }
            };
            Some(Optimizer::Adam(Adam {
                lr: args.lr.unwrap_or(own.lr),
                betas,
                eps: args.eps.unwrap_or(own.eps),
                weight_decay: args.weight_decay.unwrap_or(own.weight_decay),
                amsgrad: args.amsgrad,
                maximize: args.maximize,
                decoupled_weight_decay: args.decoupled_weight_decay,
            }))
        }
    })
}

/// The ranks that train together, if gradients are averaged.
///
/// # Errors
/// A size of buckets that is negative.
pub fn parallel(args: &OptimizerArgs) -> Result<Option<DataParallel>, Failure> {
    let Some(group) = &args.data_parallel else { return Ok(None) };
    let mut out = DataParallel { group: group.clone(), ..DataParallel::default() };
    if let Some(bytes) = args.bucket_bytes {
        let wrong = |_| Failure::Usage(format!("--bucket-bytes {bytes}"), "give 0 or more bytes".into());
        out.bucket_bytes = usize::try_from(bytes).map_err(wrong)?;
    }
    Ok(Some(out))
}

/// The files to write: one for all ranks, or, where ranks share updates, one for each.
///
/// # Errors
/// Files of several ranks under one name.
pub fn of_ranks(
    parallel: &DataParallel,
    ranks: Option<usize>,
    output: &Path,
) -> Result<Vec<(PathBuf, DataParallel)>, Failure> {
    let Some(ranks) = ranks else { return Ok(vec![(output.into(), parallel.clone())]) };
    let name = output.to_string_lossy().into_owned();
    if !(1..=1024).contains(&ranks) {
        return Err(Failure::Usage(format!("--shard {ranks}"), "give a number of ranks from 1 to 1024".into()));
    }
    if ranks > 1 && !name.contains("{rank}") {
        let what = format!("{ranks} ranks, each with a program of its own, would all be written to {name}");
        return Err(Failure::Usage(what, "give each a file of its own: -o 'step.{rank}.pt2'".into()));
    }
    let of = |rank: usize| {
        let path = name.replace("{rank}", &rank.to_string()).into();
        (path, DataParallel { shard: Some(Shard { rank, ranks }), ..parallel.clone() })
    };
    Ok((0..ranks).map(of).collect())
}
