//! A `.pt2` file: which entries it has, in each of the layouts that PyTorch has written.

mod read;
mod write;

pub use read::{Archive, ArchiveLayout, Payload};
pub use write::{ArchiveContents, ArchiveFile, ModelFiles, write_archive};

/// Names inside of an archive, below its root folder.
pub mod names {
    /// Says that it is a `.pt2`.
    pub const FORMAT: &str = "archive_format";
    /// The version of the layout.
    pub const VERSION: &str = "archive_version";
    /// The version of the container.
    pub const CONTAINER_VERSION: &str = ".data/version";
    /// A number that follows the contents.
    pub const SERIALIZATION_ID: &str = ".data/serialization_id";
    /// `little` or `big`.
    pub const BYTEORDER: &str = "byteorder";
    /// Folder of storages of the state dict.
    pub const WEIGHTS: &str = "data/weights/";
    /// Folder of storages of constants and non-persistent buffers.
    pub const CONSTANTS: &str = "data/constants/";
    /// Folder of programs.
    pub const MODELS: &str = "models/";
    /// Folder of sample inputs.
    pub const SAMPLE_INPUTS: &str = "data/sample_inputs/";
    /// Folder of extra files.
    pub const EXTRA: &str = "extra/";

    /// The program of a model.
    pub fn model(name: &str) -> String {
        format!("{MODELS}{name}.json")
    }

    /// The config of a model's state dict.
    pub fn weights_config(name: &str) -> String {
        format!("{WEIGHTS}{name}_weights_config.json")
    }

    /// The config of a model's constants.
    pub fn constants_config(name: &str) -> String {
        format!("{CONSTANTS}{name}_constants_config.json")
    }

    /// The sample inputs of a model.
    pub fn sample_inputs(name: &str) -> String {
        format!("{SAMPLE_INPUTS}{name}.pt")
    }

    /// The state dict of a model in PyTorch 2.8's layout.
    pub fn pickled_weights(name: &str) -> String {
        format!("{WEIGHTS}{name}.pt")
    }

    /// The constants of a model in PyTorch 2.8's layout.
    pub fn pickled_constants(name: &str) -> String {
        format!("{CONSTANTS}{name}.pt")
    }
}

/// Names in the flat layout of PyTorch 2.6 and 2.7.
pub(crate) mod flat {
    pub(crate) const PROGRAM: &str = "serialized_exported_program.json";
    pub(crate) const STATE_DICT: &str = "serialized_state_dict.pt";
    pub(crate) const CONSTANTS: &str = "serialized_constants.pt";
    pub(crate) const EXAMPLE_INPUTS: &str = "serialized_example_inputs.pt";
    pub(crate) const VERSION: &str = "version";
    pub(crate) const EXTRA: &str = "extra_files/";
}

#[cfg(test)]
mod tests;
