//! Exponentials and logarithms of many numbers, to nine digits, several at a time; the gamma
//! function of one.
//!
//! The standard library's are calls that cannot be made side by side; a posterior takes a hundred
//! thousand of them.

/// Adding this rounds to a whole number, whose bits are then the last ones.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Replaces numbers by their exponentials; below −700 by 0 or nearly, above 700 by that of 700.
pub(crate) fn exp(values: &mut [f64]) {
    for value in values {
        let x = value.clamp(-700.0, 700.0);
        let shifted = x * std::f64::consts::LOG2_E + ROUND;
        let whole = shifted - ROUND;
        let rest = x - whole * std::f64::consts::LN_2;
        // Taylor's series on ±ln 2 / 2.
        let mut sum = 1.0 / 40_320.0;
        for factor in [5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
            sum = sum * rest + 1.0 / factor;
        }
        let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
        *value = sum * power;
    }
}

/// Replaces positive normal numbers by their logarithms, and 0 by less than −700.
pub(crate) fn ln(values: &mut [f64]) {
    const HALF_ROOT: u64 = 0x3FE6_A09E_667F_3BCD; // √½
    for value in values {
        let bits = value.to_bits();
        // The exponent that leaves a mantissa between √½ and √2, as a float by way of its bits.
        let power = bits.wrapping_sub(HALF_ROOT) >> 52;
        let whole =
            f64::from_bits((power & 0xFFF) | 0x4330_0000_0000_0000) - 4_503_599_627_370_496.0;
        let whole = if whole > 2047.0 { whole - 4096.0 } else { whole };
        let mantissa = f64::from_bits(bits.wrapping_sub(power << 52));
        let t = (mantissa - 1.0) / (mantissa + 1.0);
        let square = t * t;
        let mut sum = 1.0 / 11.0;
        for divisor in [9.0, 7.0, 5.0, 3.0, 1.0] {
            sum = sum * square + 1.0 / divisor;
        }
        *value = 2.0 * t * sum + whole * std::f64::consts::LN_2;
    }
}

/// Log of the gamma function of a number of at least 1, by Stirling's series.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 1.0);
    while x < 12.0 {
        below *= x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_have_nine_digits() {
        for i in -6_990..=6_990 {
            let x = f64::from(i) * 0.1 + 1e-3;
            let mut found = [x];
            exp(&mut found);
            assert!((found[0] / x.exp() - 1.0).abs() < 1e-9, "{x}: {}", found[0]);
            ln(&mut found);
            assert!((found[0] - x).abs() < 1e-9 * x.abs().max(1.0), "{x}: {}", found[0]);
        }
        let mut ends = [0.0, f64::NEG_INFINITY, 1e4, 1.0];
        exp(&mut ends);
        assert_eq!(ends[0], 1.0);
        assert!(ends[1] < 1e-300 && ends[2] > 1e300);
        let mut ends = [0.0, 1.0];
        ln(&mut ends);
        assert!(ends[0] < -700.0 && ends[1] == 0.0);
    }

    #[test]
    fn the_gamma_function_has_its_values() {
        for (x, wanted) in
            [(1.0, 0.0), (2.0, 0.0), (5.0, 24.0_f64.ln()), (1.5, -0.120_782_237_635_245_22)]
        {
            assert!((ln_gamma(x) - wanted).abs() < 1e-12, "{x}: {}", ln_gamma(x));
        }
        assert!((ln_gamma(1e6) / 12_815_504.569_147_611 - 1.0).abs() < 1e-13);
    }
}
