//! All tests of whole programs that need no process of their own: one binary is linked instead of 21.

mod alias;
mod arena_floor;
mod autograd;
mod budget;
mod constants;
mod control_gradients;
mod custom_ops;
mod damage;
mod explain;
mod gradient_kinks;
mod gradients;
mod imported;
mod invariants;
mod meaning;
mod memories;
mod methods;
mod plan_file;
mod portable;
mod semantics;
mod tape;
mod tape_random;
mod timeline;
mod traced;
mod train;
mod triton;
