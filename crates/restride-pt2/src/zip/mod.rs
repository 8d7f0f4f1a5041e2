//! Zip files: as much of the format as `.pt2`, `torch.save` and `.npz` use.
//!
//! Own code rather than a crate, because what is needed is the *place* of every stored entry in the input (so
//! that weights can be used where they lie in a mapped file) and control over the padding of local headers.

mod read;
mod write;

pub use read::{Method, ZipEntry, ZipReader};
pub use write::{Compression, ZipWriter};

pub(crate) const LOCAL_SIGNATURE: u32 = 0x0403_4b50;
pub(crate) const CENTRAL_SIGNATURE: u32 = 0x0201_4b50;
pub(crate) const EOCD_SIGNATURE: u32 = 0x0605_4b50;
pub(crate) const EOCD64_SIGNATURE: u32 = 0x0606_4b50;
pub(crate) const LOCATOR64_SIGNATURE: u32 = 0x0706_4b50;
/// Id of the extra field that carries 64-bit sizes.
pub(crate) const ZIP64_EXTRA: u16 = 1;
/// Entries start at multiples of this, as PyTorch writes them.
pub(crate) const ALIGNMENT: u64 = 64;
