//! Options for memory.

use super::values::{alignment, bytes, memory, pin};
use clap::Args;

const MEMORY: &str = "Memory";

/// How memory is placed and planned.
#[derive(Args)]
pub struct MemoryArgs {
    /// Largest arena (as 4000000, 10MB or 4GiB): cheap values are recomputed instead of kept.
    #[arg(help_heading = MEMORY, long, value_name = "BYTES", value_parser = bytes)]
    pub budget: Option<i64>,
    /// Keep the nodes in the order of the program.
    #[arg(help_heading = MEMORY, long)]
    pub no_reorder: bool,
    /// Compute nothing once for all runs, and read weights where they are: less memory, slower products.
    #[arg(help_heading = MEMORY, long)]
    pub no_fold: bool,
    /// Run every operator as a step of its own, which writes its results.
    #[arg(help_heading = MEMORY, long, conflicts_with_all = ["fuse_limit", "fuse_heads", "fuse_tiles"])]
    pub no_fuse: bool,
    /// Most operators that are fused into one step; 1 is `--no-fuse` [default: 32].
    #[arg(help_heading = MEMORY, long, value_name = "N")]
    pub fuse_limit: Option<usize>,
    /// Let the operators behind a product or a convolution work on each part of its result as soon as it is finished.
    #[arg(help_heading = MEMORY, long)]
    pub fuse_heads: bool,
    /// Fuse normalisations and variances of rows too (layer norm, softmax), and operators of other types than f32.
    #[arg(help_heading = MEMORY, long)]
    pub fuse_tiles: bool,
    /// Memories of the arena, fastest first, each with its capacity (as fast=512kB,slow).
    ///
    /// Buffers with the most traffic go into the first ones; buffers that do not fit spill to the next.
    #[arg(help_heading = MEMORY, long, value_name = "NAME[=BYTES],…", value_delimiter = ',', value_parser = memory)]
    pub memories: Vec<(String, Option<i64>)>,
    /// Store a value in one of the memories, by its name in the placed program; may be given several times.
    #[arg(help_heading = MEMORY, long, value_name = "VALUE=MEMORY", requires = "memories", value_parser = pin)]
    pub pin: Vec<(String, String)>,
    /// Alignment of buffers in the arena: a power of two, 64 or more.
    #[arg(help_heading = MEMORY, long, value_name = "BYTES", value_parser = alignment)]
    pub align: Option<i64>,
    /// Plan user inputs in the arena and copy them into it: `alloc_graph_input` of ExecuTorch.
    #[arg(help_heading = MEMORY, long)]
    pub alloc_graph_input: bool,
    /// Plan outputs in the arena and copy them to the caller: `alloc_graph_output` of ExecuTorch.
    #[arg(help_heading = MEMORY, long)]
    pub alloc_graph_output: bool,
    /// Copy instead of viewing: store no view in the memory of its base.
    #[arg(help_heading = MEMORY, long)]
    pub no_views: bool,
    /// Steps of the search for the smallest plan; 0 for best fit alone.
    #[arg(help_heading = MEMORY, long, value_name = "N")]
    pub search_steps: Option<u64>,
}

impl MemoryArgs {
    /// The first of these options that is given.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            (self.budget.is_some(), "--budget"),
            (self.no_reorder, "--no-reorder"),
            (self.no_fold, "--no-fold"),
            (self.no_fuse, "--no-fuse"),
            (self.fuse_limit.is_some(), "--fuse-limit"),
            (self.fuse_heads, "--fuse-heads"),
            (self.fuse_tiles, "--fuse-tiles"),
            (!self.memories.is_empty(), "--memories"),
            (self.align.is_some(), "--align"),
            (self.alloc_graph_input, "--alloc-graph-input"),
            (self.alloc_graph_output, "--alloc-graph-output"),
            (self.no_views, "--no-views"),
            (self.search_steps.is_some(), "--search-steps"),
        ];
        options.iter().find(|(given, _)| *given).map(|(_, name)| *name)
    }
}
