//! The report on datasets like those that real runs give, and on hostile ones.

mod fixture;
mod formats;
mod hostile;
mod words;
