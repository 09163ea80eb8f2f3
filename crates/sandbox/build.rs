//! Compiles the files in shim/ to small shared libraries that are embedded: see there.

include!("shim/build.rs");

fn main() -> Result<(), Box<dyn Error>> {
    build("ptrace", &[])?;
    build("exact", &[])
}
