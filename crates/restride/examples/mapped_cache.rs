//! A key-value cache in a mapped file: every run of this program goes on where the last one stopped.
//!
//! ```sh
//! cargo run --release -p restride --example mapped_cache -- fixtures/pt2/kv_cache.pt2 cache.bin k v
//! ```
//!
//! The named buffers of the state lie one after the other in the file, each from a page of its own on. The first run copies the
//! program's buffers in the file, later ones find them. The first output is computed into a `Vec` of this program.

use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RawTensor, RunOptions, Storage, open};
use std::error::Error;
use std::fs::File;
use std::path::Path;

/// Alignment of buffers: the largest page size of common systems.
const PAGE: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [program, cache, buffers @ ..] = &args[..] else {
        return Err("usage: mapped_cache PROGRAM.pt2 CACHE BUFFER …".into());
    };
    let program = open(Path::new(program), &OpenOptions::default())?;
    let inputs = Inputs::from_samples(&program).ok_or("the file has no sample inputs")??;
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    let mut instance = compiled.instance()?;

    let fresh = !Path::new(cache).exists();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(cache)?;
    let mut end = 0;
    for name in buffers {
        let bytes = instance.state().get(name).ok_or("no such buffer")?.storage().len();
        let start = end;
        end = (start + bytes).next_multiple_of(PAGE);
        if file.metadata()?.len() < end as u64 {
            file.set_len(end as u64)?;
        }
        // SAFETY: no other process writes the file while this one runs.
        let map = unsafe { memmap2::MmapOptions::new().offset(start as u64).len(bytes).map_mut(&file)? };
        let memory = Storage::from_owner(map);
        match fresh {
            true => instance.state_mut().move_to(name, memory)?,
            false => instance.state_mut().resume(name, memory)?,
        }
    }

    // Memory for the first output: what eager PyTorch gives says its type and strides.
    let first = instance.run(&inputs, &RunOptions::default())?;
    let like = first.values[0].tensor().ok_or("the first output is no tensor")?;
    let memory = Storage::from_owner(vec![0u8; like.storage().len() + 64]);
    let given = aligned(memory, like).ok_or("the memory does not hold the output")?;
    let mut session = instance.session(&inputs, &[Some(given.clone())], &RunOptions::default())?;
    session.run()?;
    println!("{:?} …", &given.storage().to_vec()[..16]);
    Ok(())
}

/// A tensor like another one in memory that may begin anywhere.
fn aligned(memory: Storage, like: &RawTensor) -> Option<RawTensor> {
    let mut layout = like.layout().clone();
    layout.offset = 0;
    RawTensor::new(memory, like.dtype(), layout)
}
