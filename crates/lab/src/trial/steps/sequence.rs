//! The agent's part in sequences of calls before power cuts: it carries them out, and looks at what a cut would have left.

use crate::{
    agent::protocol::{FindingReport, SequenceDone, SequenceJob, SequenceState, SequenceStateReply, SequenceWhat},
    meters::{self, Marker},
    trial::{
        carried::Carried,
        record::{Halt, failed, skipped},
        session::Session,
    },
};
use fstone_engine::sequences::{Performed, Sequence, numbers, plant};
use fstone_model::Step;
use std::time::Instant;

impl Session {
    pub(crate) fn carry_out_sequence(&mut self, job: &SequenceJob) -> Result<SequenceDone, Halt> {
        let step = &job.step;
        let Some(device) = self.device.as_ref().map(|device| device.path().to_owned()) else {
            return Err(failed(step, "there is no device".into()));
        };
        self.mount_anew(step, &device)?.map_err(|words| failed(step, format!("mount: {words}")))?;
        let done = match &job.what {
            SequenceWhat::Plant => {
                plant(&self.place).map_err(|error| failed(step, format!("make the first files: {error}")))?;
                let planted = numbers(&self.place);
                self.unmount(step)?;
                self.mount_anew(step, &device)?.map_err(|words| failed(step, format!("mount: {words}")))?;
                if numbers(&self.place) != planted {
                    let words =
                        "its files have different inode numbers after each mount and cannot be identified by them";
                    return Err(skipped(&step.name, words.into()));
                }
                SequenceDone::default()
            }
            SequenceWhat::Calls(text) => {
                let sequence: Sequence = text.parse().map_err(|error| failed(step, format!("{error}")))?;
                let mut marks = Vec::new();
                let mut missing = false;
                let marker = meters::marker(&device);
                let set_mark = || marker.as_ref().and_then(Marker::mark);
                let performed = Performed::perform(&self.place, &sequence, &mut || match set_mark() {
                    Some(mark) => marks.push(mark),
                    None => missing = true,
                });
                if missing {
                    return Err(failed(step, "the disk takes no marks".into()));
                }
                match performed {
                    Ok(performed) => {
                        self.sequence = Some(Carried::new(performed, marks.clone()));
                        SequenceDone { marks, ..SequenceDone::default() }
                    }
                    Err(words) => SequenceDone { refused: Some(words), ..SequenceDone::default() },
                }
            }
        };
        self.unmount(step)?;
        Ok(done)
    }

    /// Mounts the state that the disk shows now, compares it with what was persisted, unmounts it and checks it.
    pub(crate) fn look_at_sequence(&mut self, state: &SequenceState) -> Result<SequenceStateReply, Halt> {
        let step = &state.step;
        let (Some(filesystem), Some(device)) = (self.filesystem, &self.device) else {
            return Err(failed(step, "there is no device".into()));
        };
        let (path, argument) = (device.path().to_owned(), device.argument());
        let mut reply = SequenceStateReply::default();
        let started = Instant::now();
        match self.mount_anew(step, &path)? {
            Ok(time) => {
                reply.mounted = Some(time);
                let Some(carried) = &self.sequence else {
                    return Err(failed(step, "no sequence was carried out before it".into()));
                };
                let looked = carried.look(&self.place, state.mark);
                let facts = looked.facts.into_iter();
                reply.told = facts.map(|(aspect, finding)| FindingReport::new(true, aspect.name(), finding)).collect();
                let properties = looked.properties.into_iter();
                reply
                    .told
                    .extend(properties.map(|(property, finding)| FindingReport::new(false, property.name(), finding)));
                // What was found counts all the same.
                match self.unmount(step) {
                    Ok(()) => {}
                    Err(Halt::Outcome(outcome)) => return Ok(SequenceStateReply { end: Some(outcome), ..reply }),
                    Err(halt) => return Err(halt),
                }
            }
            Err(words) => reply.words = Some(format!("mount: {words}")),
        }
        let looked = started.elapsed();
        if state.check {
            match self.check_left(step, filesystem, &argument) {
                Ok(None) => {}
                Ok(Some(checked)) => {
                    reply.clean = checked.clean;
                    reply.words = reply.words.or(checked.words);
                }
                Err(Halt::Outcome(outcome)) => return Ok(SequenceStateReply { end: Some(outcome), ..reply }),
                Err(halt) => return Err(halt),
            }
        }
        reply.checking = started.elapsed().saturating_sub(looked);
        Ok(reply)
    }

    fn unmount(&mut self, step: &Step) -> Result<(), Halt> {
        self.machine.mounter.unmount(&self.place).map_err(|error| failed(step, error.to_string()))?;
        self.mounted = false;
        Ok(())
    }
}
