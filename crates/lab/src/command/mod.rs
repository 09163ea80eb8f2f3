//! Programs run by argv, never by a shell, with a limit, in a process group that dies with us.
