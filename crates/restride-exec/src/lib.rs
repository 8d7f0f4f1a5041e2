//! Running programs: the interpreter with true aliasing, and the planned run in one arena.
