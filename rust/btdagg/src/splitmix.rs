//! Random words by number: any thread can draw any of them.

/// Steele, Lea and Flood (2014), Vigna's constants: splitmix64 is a mixed counter.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Every bit of the word on every bit of the result; no two words have the same result.
pub(crate) const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The word that [`mix`] turns into this one.
pub(crate) const fn unmix(mut word: u64) -> u64 {
    word = (word ^ (word >> 31) ^ (word >> 62)).wrapping_mul(0x3196_42B2_D24D_8EC3);
    word = (word ^ (word >> 27) ^ (word >> 54)).wrapping_mul(0x96DE_1B17_3F11_9089);
    word ^ (word >> 30) ^ (word >> 60)
}

/// Word of that number in the stream of that seed, as a number from 0 to below 1.
pub(crate) fn uniform(seed: u64, number: u64) -> f64 {
    let start = mix(seed.wrapping_add(STEP));
    let word = mix(start.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP)));
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let top = (word >> 11) as f64;
    top * 2.0_f64.powi(-53)
}
