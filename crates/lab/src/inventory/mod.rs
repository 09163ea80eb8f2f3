//! The machine a run is made on, as far as it bears on the figures.
