//! Zip files: as much of the format as `.pt2`, `torch.save` and `.npz` use.
//!
//! `rawzip` finds entries; what an untrusted file may hold is checked here. Writing is our own code, because PyTorch wants
//! stored entries aligned by padding in their local headers.

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
