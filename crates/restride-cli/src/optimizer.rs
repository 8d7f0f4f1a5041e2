//! The optimizer that the options of `grad` name.

use crate::Failure;
use crate::args::{OptimizerArg, OptimizerArgs};
use restride::{Adam, Optimizer, Sgd};

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
