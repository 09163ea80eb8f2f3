//! A guest that asks its host something in the middle of its job.
//!
//! Nothing may reach the guest at a moment that is the host's. So it writes its question into a file of its directory and asks
//! its disk for its name, which is a request like any other. Before that is answered the host reads the question and writes
//! the answer into another file. The guest's time stands still meanwhile: however long the host takes, nothing in the guest
//! depends on it. What the host answers has to follow from the question, the disk and the seed alone.

use crate::power::{CrashState, Log, LogError, Mirror, States};
use crate::process::lend;
use crate::vhost::{Engine, Shared};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Questions and answers, in the guest's directory. A number follows: a name is used once, for the guest's kernel may remember
/// what it read by a name.
pub(crate) const QUESTION: &str = "uml/question-";
pub(crate) const ANSWER: &str = "answer-";

/// The result: a first line that says "done" or "failed", then the body or why. Like all that the guest writes it is in the one
/// directory that it may change.
pub(crate) const RESULT: &str = "uml/result";

/// The longest question, and the longest result.
const MAX_QUESTION_BYTES: u64 = 16 << 20;
const MAX_RESULT_BYTES: u64 = 256 << 20;

/// Answers a guest's questions.
pub trait Attendant {
    /// The answer. The disk may be changed meanwhile, of which the guest has to know nothing by then.
    fn answer(&mut self, question: &[u8], disk: &mut StoppedDisk<'_>) -> Vec<u8>;

    /// Learns now and then how much was written to the disk. Nothing in the guest depends on it.
    fn written(&mut self, _bytes: u64) {}
}

/// The disk of a guest whose time stands still.
#[derive(Debug)]
pub struct StoppedDisk<'a> {
    engine: &'a mut Engine,
    place: &'a Place,
}

#[derive(Debug)]
pub(super) struct Place {
    pub(super) shared: Shared,
    pub(super) image: File,
    pub(super) directory: PathBuf,
    /// `None` where the guest has ended before it could be looked for.
    pub(super) outputs: Option<Outputs>,
}

/// The directory that the guest writes.
#[derive(Debug)]
pub(super) struct Outputs(pub(super) OwnedFd);

impl Outputs {
    /// What is in a file of this name; `None` if there is none. Whatever a guest may have put there, no link is followed, and no
    /// pipe waited for.
    fn take(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let name = name.rsplit('/').next().unwrap_or(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(format!("a guest's {name} that is no file")));
        }
        let mut content = Vec::new();
        file.take(limit).read_to_end(&mut content)?;
        unlinkat(&self.0, name, AtFlags::empty())?;
        Ok(Some(content))
    }
}

impl StoppedDisk<'_> {
    /// The log so far, of a disk that keeps one.
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

    /// Makes a file hold the crash state that is shown, with what was written to it meanwhile; whether one is shown.
    ///
    /// # Errors
    /// When requests are under way, or the host has no room.
    pub fn mirror(&self, mirror: &mut Mirror) -> io::Result<bool> {
        self.idle()?;
        self.place.shared.mirror(mirror)
    }

    fn idle(&self) -> io::Result<()> {
        match self.engine.is_idle() {
            true => Ok(()),
            false => Err(io::Error::other("requests to the disk are under way")),
        }
    }
}

pub(super) struct Desk<'a> {
    place: Place,
    attendant: Option<&'a mut dyn Attendant>,
    next: u64,
}

impl<'a> Desk<'a> {
    pub(super) const fn new(place: Place, attendant: Option<&'a mut dyn Attendant>) -> Self {
        Self { place, attendant, next: 0 }
    }

    /// The guest asked for the name of its disk: answers its question, if it has one.
    pub(super) fn attend(&mut self, engine: &mut Engine) -> io::Result<()> {
        let (Some(attendant), Some(outputs)) = (&mut self.attendant, &self.place.outputs) else { return Ok(()) };
        let Some(question) = outputs.take(&format!("{QUESTION}{}", self.next), MAX_QUESTION_BYTES)? else {
            return Ok(());
        };
        let answer = attendant.answer(&question, &mut StoppedDisk { engine, place: &self.place });
        let path = self.place.directory.join(format!("{ANSWER}{}", self.next));
        File::create_new(&path)?.write_all(&answer)?;
        lend(&path)?;
        self.next += 1;
        Ok(())
    }

    pub(super) fn tell_written(&mut self) {
        if let Some(attendant) = &mut self.attendant {
            attendant.written(self.place.shared.counters().write_bytes);
        }
    }

    pub(super) fn result(&self) -> Option<Vec<u8>> {
        self.place.outputs.as_ref()?.take(RESULT, MAX_RESULT_BYTES).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vhost::DiskSpec;
    use fstone_drive::Model;
    use std::fs;

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
        std::fs::create_dir(path("uml")).unwrap();
        let outputs = Some(Outputs(File::open(path("uml")).unwrap().into()));
        let place = Place { shared, image, directory: directory.path().to_owned(), outputs };
        let mut desk = Desk::new(place, Some(&mut echo));
        desk.attend(&mut engine).unwrap();
        for (number, answer) in ["what?1", "what?2"].into_iter().enumerate() {
            fs::write(path(&format!("{QUESTION}{number}")), "what?").unwrap();
            desk.attend(&mut engine).unwrap();
            // Its name is asked for again, and there is no new question.
            desk.attend(&mut engine).unwrap();
            assert_eq!(fs::read_dir(path("uml")).unwrap().count(), 0, "questions do not fill it");
            assert_eq!(fs::read_to_string(path(&format!("{ANSWER}{number}"))).unwrap(), answer);
        }
        // Whatever a guest puts into its directory, nothing outside of it is read or written.
        fs::write(path("secret"), "x").unwrap();
        std::os::unix::fs::symlink(path("secret"), path("uml/question-2")).unwrap();
        assert!(desk.attend(&mut engine).is_err());
        fs::remove_file(path("uml/question-2")).unwrap();
        std::os::unix::fs::symlink(path("secret"), path("answer-2")).unwrap();
        fs::write(path("uml/question-2"), "what?").unwrap();
        assert!(desk.attend(&mut engine).is_err());
        assert_eq!(fs::read_to_string(path("secret")).unwrap(), "x");
    }
}
