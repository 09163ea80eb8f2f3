//! What tests of several kinds of drives need.

use crate::{Drive, Model};

/// When a request is complete. Others that are complete before are taken, too.
pub(crate) fn at(drive: &mut Drive, id: u64) -> u64 {
    while let Some(event) = drive.next_event() {
        while let Some((at_ns, done)) = drive.completed(event) {
            if done == id {
                return at_ns;
            }
        }
    }
    panic!("{id} was never complete")
}

pub(crate) fn with(model: &Model, changed: &[(&str, &str)]) -> Model {
    let parameters: String = model
        .parameters()
        .iter()
        .map(|one| {
            let is = match changed.iter().find(|(name, _)| *name == one.name) {
                Some((_, is)) => (*is).to_owned(),
                None if one.written.parse::<f64>().is_ok() => one.written.clone(),
                None => format!("{:?}", one.written),
            };
            format!("{} = {{ is = {is}, from = \"the model\" }}\n", one.name)
        })
        .collect();
    let text = format!("title = \"\"\nkind = {:?}\n[parameters]\n{parameters}", model.kind().word());
    Model::parse(model.name(), &text).expect("a model")
}
