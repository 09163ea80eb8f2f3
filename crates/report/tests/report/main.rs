//! The report on datasets like those that real runs give, and on hostile ones.

mod compare;
mod figures;
mod fixture;
mod formats;
mod history;
mod hostile;
mod machines;
mod odd;
mod pages;
mod publish;
mod rules;
mod words;
