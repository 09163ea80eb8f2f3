//! How long to wait for a rank.

use fstone_model::{
    ranks::LEAST_PATIENCE,
    units::{format_duration, parse_duration},
};
use std::time::Duration;

pub(super) fn parse(text: &str) -> Result<Duration, String> {
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
