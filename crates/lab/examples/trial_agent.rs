//! Process 1 of the guests of this crate's tests: what the fstone binary is otherwise.

fn main() {
    if fstone_lab::agent::is_agent() {
        fstone_lab::agent::agent_main();
    }
    eprintln!("this is process 1 of guests, and nothing else");
}
