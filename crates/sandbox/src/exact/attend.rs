//! A guest that asks its host something in the middle of its job.
//!
//! Nothing may reach the guest at a moment that is the host's. So it writes its question into a file of its directory and asks
//! its disk for its name, which is a request like any other. Before that is answered the host reads the question and writes
//! the answer into another file. The guest's time stands still meanwhile: however long the host takes, nothing in the guest
//! depends on it. What the host answers has to follow from the question, the disk and the seed alone.

use crate::power::{CrashState, Log, LogError, States};
use crate::vhost::{Engine, Shared};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Questions and answers, in the guest's directory. A number follows: a name is used once, for the guest's kernel may remember
/// what it read by a name.
pub(crate) const QUESTION: &str = "question-";
pub(crate) const ANSWER: &str = "answer-";

/// The longest question.
const MAX_QUESTION_BYTES: u64 = 16 << 20;

/// Answers a guest's questions.
pub trait Attendant {
    /// The answer. The disk may be changed meanwhile, of which the guest has to know nothing by then.
    fn answer(&mut self, question: &[u8], disk: &mut StoppedDisk<'_>) -> Vec<u8>;
}

/// The disk of a guest whose time stands still.
#[derive(Debug)]
pub struct StoppedDisk<'a> {
    engine: &'a mut Engine,
    place: &'a Place,
}

/// What belongs to the guest's disk.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) shared: Shared,
    pub(super) image: File,
    /// The guest's own.
    pub(super) directory: PathBuf,
}

impl StoppedDisk<'_> {
    /// The log so far, of a disk that keeps one.
    #[must_use]
    pub fn log(&self) -> Option<Result<Log, LogError>> {
        self.place.shared.log()
    }

    /// Begins the log of a disk that keeps one anew: from now on it is of changes to what the disk holds now.
    ///
    /// # Errors
    /// When requests are under way, or the image cannot be copied.
    pub fn begin_log_anew(&mut self) -> io::Result<()> {
        self.idle()?;
        self.place.shared.begin_log_anew(&self.place.image, &self.place.directory)
    }

    /// Shows a crash state in place of what was written, or that again when there is none, on a drive that has just been
    /// switched on. Nothing of it may be mounted; the guest has to forget what it knows of the disk. What is written to the
    /// state is gone with it.
    ///
    /// # Errors
    /// When requests are under way, or the host has no room. Then the disk shows what it showed.
    pub fn show(&mut self, state: Option<(&mut States, CrashState)>) -> io::Result<()> {
        self.idle()?;
        self.place.shared.show(state, &self.place.directory)?;
        self.engine.switch_on_again();
        Ok(())
    }

    fn idle(&self) -> io::Result<()> {
        match self.engine.is_idle() {
            true => Ok(()),
            false => Err(io::Error::other("requests to the disk are under way")),
        }
    }
}

/// Where questions are asked.
pub(super) struct Desk<'a> {
    place: Place,
    attendant: Option<&'a mut dyn Attendant>,
    /// The number of the next question.
    next: u64,
}

impl<'a> Desk<'a> {
    pub(super) const fn new(place: Place, attendant: Option<&'a mut dyn Attendant>) -> Self {
        Self { place, attendant, next: 0 }
    }

    /// The guest asked for the name of its disk: answers its question, if it has one.
    pub(super) fn attend(&mut self, engine: &mut Engine) -> io::Result<()> {
        let Some(attendant) = &mut self.attendant else { return Ok(()) };
        let named = |what: &str, number: u64| self.place.directory.join(format!("{what}{number}"));
        // No link and no pipe, whatever a guest may have put there.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(named(QUESTION, self.next)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("a question that is no file"));
        }
        let mut question = Vec::new();
        file.take(MAX_QUESTION_BYTES).read_to_end(&mut question)?;
        let answer = attendant.answer(&question, &mut StoppedDisk { engine, place: &self.place });
        File::create_new(named(ANSWER, self.next))?.write_all(&answer)?;
        self.next += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vhost::DiskSpec;
    use fstone_drive::Model;
    use std::fs;

    /// Says what it was asked, and how often.
    struct Echo(u32);

    impl Attendant for Echo {
        fn answer(&mut self, question: &[u8], disk: &mut StoppedDisk<'_>) -> Vec<u8> {
            self.0 += 1;
            assert!(disk.log().is_none(), "nobody asked for one");
            [question, self.0.to_string().as_bytes()].concat()
        }
    }

    #[test]
    fn each_question_is_answered_once_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let image = File::create_new(path("image")).unwrap();
        image.set_len(1 << 20).unwrap();
        let (spec, shared) = (DiskSpec::new(path("image")), Shared::default());
        let model = Model::find("constant").unwrap();
        let mut engine = Engine::simulated(&spec, image.try_clone().unwrap(), &model, &shared).unwrap();
        let mut echo = Echo(0);
        let place = Place { shared, image, directory: directory.path().to_owned() };
        let mut desk = Desk::new(place, Some(&mut echo));
        desk.attend(&mut engine).unwrap();
        for (number, answer) in ["what?1", "what?2"].into_iter().enumerate() {
            fs::write(path(&format!("{QUESTION}{number}")), "what?").unwrap();
            desk.attend(&mut engine).unwrap();
            // Its name is asked for again, and there is no new question.
            desk.attend(&mut engine).unwrap();
            assert_eq!(fs::read_to_string(path(&format!("{ANSWER}{number}"))).unwrap(), answer);
        }
        // Whatever a guest puts into its directory, nothing outside of it is read or written.
        fs::write(path("secret"), "x").unwrap();
        std::os::unix::fs::symlink(path("secret"), path("question-2")).unwrap();
        assert!(desk.attend(&mut engine).is_err());
        fs::remove_file(path("question-2")).unwrap();
        std::os::unix::fs::symlink(path("secret"), path("answer-2")).unwrap();
        fs::write(path("question-2"), "what?").unwrap();
        assert!(desk.attend(&mut engine).is_err());
        assert_eq!(fs::read_to_string(path("secret")).unwrap(), "x");
    }
}
