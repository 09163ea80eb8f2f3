//! How long to wait for a rank.

use fstone_model::{
    ranks::LEAST_PATIENCE,
    units::{format_duration, parse_duration},
};
use std::time::Duration;

#[cfg(feature = "mpi")]
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Patience {
    /// With many ranks: a rank that gives no sign of life for this long is considered dead
    #[arg(long = "rank-silence", value_name = "TIME", value_parser = parse, default_value = "60 s")]
    pub(crate) silence: Duration,
    /// With many ranks: a rank that completes nothing for this long is considered hung
    #[arg(long = "rank-stillness", value_name = "TIME", value_parser = parse, default_value = "10 min")]
    pub(crate) stillness: Duration,
}

fn parse(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time < LEAST_PATIENCE {
        let least = format_duration(LEAST_PATIENCE);
        return Err(format!(
            "it must be at least {least}: a rank gives a sign of life about once a second, and a busy machine delays it"
        ));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_waited_for_longer_than_it_takes_to_give_a_sign() {
        assert!(parse("500 ms").expect_err("too short").contains("at least 3 s"));
        assert_eq!(parse("3 s"), Ok(LEAST_PATIENCE));
    }
}
