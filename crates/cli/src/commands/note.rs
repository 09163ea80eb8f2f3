//! `fstone note`: what the user says about a run, after the run.

use super::{
    Context,
    report::{page_name, usual_directory, write_index},
    stored::{open, read_or_exit},
};
use crate::{
    args::NoteArguments,
    documents,
    exit::Exit,
    terminal::{self, CommandResult, OrExit},
};
use fstone_report::Options;

pub(crate) fn note(context: &Context, arguments: &NoteArguments) -> CommandResult {
    // What is not there makes no store.
    read_or_exit(open(context)?.figures(arguments.run))?;
    let mut store = context.open_store()?;
    store.set_note(arguments.run, &arguments.text).or_exit(Exit::LabFailed)?;
    let dataset = store.shown(arguments.run).or_exit(Exit::LabFailed)?;
    let (run, directory) = (&dataset.run, usual_directory(context));
    let page = directory.join(page_name(&run.plan.study, run.id, &run.identified()));
    if page.is_file() {
        let options = Options { published: run.plan.published.is_some(), ..Options::default() };
        documents::write(&page, fstone_report::html(&dataset, &options))?;
        write_index(&store, &directory, &[])?;
    }
    terminal::print(&format!("Run {}: {}\n", run.id, arguments.text));
    Ok(Exit::Success)
}
