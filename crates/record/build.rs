//! Compiles the library that is preloaded into programs that are recorded.

include!("../sandbox/shim/build.rs");

fn main() -> Result<(), Box<dyn Error>> {
    // Or else what is left of the core library needs more than a program has. Its beginning comes before those of all other libraries, which
    // may copy the environment, or make calls.
    build("record", &["-C", "lto=fat", "-C", "link-arg=-Wl,-z,initfirst"])
}
