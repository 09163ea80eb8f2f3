//! Compiles the library that is preloaded into programs that are recorded.

include!("../sandbox/shim/build.rs");

fn main() -> Result<(), Box<dyn Error>> {
    // Or else what is left of the core library needs more than a program has.
    build("record", &["-C", "lto=fat"])
}
