//! What is believed of the parameters before the labels: all of it, with its reasons.
//!
//! A prior is a mixture of normal densities. Its numbers were chosen on pairs of `RewardBench` 2 and on
//! answers of chat models to 80 questions, and checked on the other sets of the gates: other judges,
//! prompts, panels, votes with strength, translations and grades.

use crate::Error;
use crate::error::{check_finite, same_length};
use crate::index::to_f64;
use crate::linear::Matrix;

/// Votes of an item that the numbers below are for.
const VOTES: f64 = 8.0;

/// How much more a feature of fewer votes is believed to say, as a power of how much smaller it is
/// at the most. Repeated votes of one judge agree, so that features of unanimous items say nearly
/// the same however many there are (1); a judge that is asked less is known less (below 1).
const OF_FEWER: f64 = 0.7;

/// Where eta is known, a tie feature like that of items with some ties: what is known of how often
/// people say tie does not depend on what ties of the judge say.
const TIE_FEATURE: f64 = -1.5;

/// A belief of pairs: its share, and means and standard deviations of beta, of eta at
/// `TIE_FEATURE`, and of gamma.
struct Pairs {
    kind: Kind,
    share: f64,
    beta: (f64, f64),
    eta: (f64, f64),
    gamma: (f64, f64),
}

/// Votes say what people say; in case these numbers are far off, wider ones; and votes say nothing,
/// with any share of ties.
const PAIRS: [Pairs; 3] = [
    Pairs { kind: Kind::Votes, share: 0.83, beta: (1.2, 0.5), eta: (0.0, 1.5), gamma: (0.8, 0.6) },
    Pairs { kind: Kind::Votes, share: 0.15, beta: (1.3, 1.2), eta: (0.0, 3.0), gamma: (1.0, 1.2) },
    Pairs {
        kind: Kind::Nothing,
        share: 0.02,
        beta: (0.0, 0.05),
        eta: (0.5, 2.0),
        gamma: (0.0, 0.05),
    },
];

/// Least beta of one judge, that of the paper's box; a judge of a panel may say nothing.
const LEAST_BETA: f64 = 1e-3;

/// Least beta of grades, whose cuts are divided by it.
const LEAST_OF_GRADES: f64 = 1e-6;

/// How far judges of a panel are apart, in shares of what each says of equals; together they say a
/// little more than one judge, as a power of their number.
const SPREADS: [f64; 2] = [1.0, 3.0];
const TOGETHER: f64 = 0.25;

/// A belief of grades: its share, mean and standard deviation of beta, by grades, and standard
/// deviations of cuts: of all together, of how far they are apart, and of each alone.
struct Grades {
    share: f64,
    beta: (f64, f64),
    shift: f64,
    stretch: f64,
    alone: f64,
}

/// People give the grade of the mean vote, or are kinder, stricter, or divide the scale elsewhere.
const GRADES: [Grades; 2] = [
    Grades { share: 0.47, beta: (2.2, 0.8), shift: 0.25, stretch: 0.15, alone: 0.25 },
    Grades { share: 0.22, beta: (1.9, 1.2), shift: 0.8, stretch: 0.6, alone: 0.3 },
];

/// Grades that are given alike divide the mean votes: a cut is where as many votes are below it, a
/// little further out, since means of votes are noisier than what grades are of. Shares and standard
/// deviations as above, the latter in those of the mean votes, and of the log odds of neighbouring
/// grades whatever the votes are.
const LINKED: Grades =
    Grades { share: 0.2, beta: (3.0, 1.8), shift: 0.6, stretch: 0.0, alone: 0.2 };
const FURTHER_OUT: f64 = 1.25;
const OF_GRADES: f64 = 0.45;

/// Votes say nothing of grades: how often each is given may be anything.
const NOTHING: f64 = 0.11;
const NO_BETA: f64 = 0.02;
const ANY_LOG_ODDS: f64 = 1.7;

/// What one spread of a covariate adds to a margin, or to the log odds of neighbouring grades:
/// nearly nothing, a little, or much, with the share of each.
const WIDTHS: [(f64, f64); 3] = [(0.5, 0.01), (0.3, 0.1), (0.2, 0.6)];

/// Beside neighbours: the share of what they have in common, and how far this task may be from one
/// of them, in standard deviations of a parameter.
const IN_COMMON: f64 = 0.6;
const APART: f64 = 0.15;

/// What keeps a density from having no width, as a variance.
const LEAST: f64 = 1e-9;

/// What a part of a prior is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Other tasks or judges.
    Neighbours,
    /// Votes say what people say, or nearly.
    Votes,
    /// Votes say nothing.
    Nothing,
}

/// A normal density among those of a prior.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is about.
    pub kind: Kind,
    /// Its share of the prior.
    pub share: f64,
    /// Mean of the parameters.
    pub mean: Vec<f64>,
    /// Their covariance, row by row.
    pub covariance: Vec<f64>,
}

/// What is believed of the parameters of a design before the labels.
///
/// ```
/// use btdagg::Prior;
///
/// let prior = Prior::of_pairs(&[8.0])?; // one judge, 8 votes an item
/// assert_eq!(prior.n_parameters(), 3);
/// assert!((prior.parts().iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-12);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    parts: Vec<Part>,
    least: Vec<f64>,
}

impl Prior {
    /// Of parts, whose shares are scaled to sum to 1, and of the least value of each parameter.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no part, a share is not above 0, lengths do not agree, a number
    /// is not finite (a least value may be minus infinity), or a covariance is not positive definite.
    pub fn new(mut parts: Vec<Part>, least: Vec<f64>) -> Result<Self, Error> {
        let n = least.len();
        if parts.is_empty() {
            return Err(Error::input("prior", "has no part", "at least one"));
        }
        for part in &parts {
            same_length("mean", part.mean.len(), n, "the least values")?;
            same_length("covariance", part.covariance.len(), n * n, "a square of the means")?;
            check_finite("mean", &part.mean, 0)?;
            check_finite("covariance", &part.covariance, 0)?;
            let covariance = Matrix { values: part.covariance.clone(), n };
            if covariance.clone().factor_if_positive().is_none() {
                return Err(Error::input("covariance", "is not", "a positive definite matrix"));
            }
            if !(part.share.is_finite() && part.share > 0.0) {
                return Err(Error::value("share", part.share, "a finite number above 0"));
            }
        }
        for (row, &least) in least.iter().enumerate() {
            if least.is_nan() || least == f64::INFINITY {
                return Err(Error::value("least", least, "a number, or minus infinity").at(&[row]));
            }
        }
        let total: f64 = parts.iter().map(|part| part.share).sum();
        parts.iter_mut().for_each(|part| part.share /= total);
        Ok(Self { parts, least })
    }

    /// Of pairs, by judges who have usually so many votes on an item: their betas, eta0 and their
    /// gammas.
    ///
    /// # Errors
    /// [`Error::Input`] if a number of votes is not above 0.
    pub fn of_pairs(usual_votes: &[f64]) -> Result<Self, Error> {
        let n_judges = usual_votes.len();
        for (row, &votes) in usual_votes.iter().enumerate() {
            if !(votes.is_finite() && votes > 0.0) {
                let expected = "a finite number above 0";
                return Err(Error::value("usual_votes", votes, expected).at(&[row]));
            }
        }
        let more = |votes: &f64| (VOTES.ln_1p() / votes.ln_1p()).powf(OF_FEWER);
        let more: Vec<f64> = usual_votes.iter().map(more).collect();
        let together = to_f64(n_judges as u64).powf(TOGETHER);
        let spreads = if n_judges == 1 { &SPREADS[..1] } else { &SPREADS[..] };
        let n = 2 * n_judges + 1;
        let mut parts = Vec::new();
        for spread in spreads {
            for of in &PAIRS {
                // Of the judges' betas, eta where it is known, and gammas.
                let each = together / to_f64(n_judges as u64);
                let mut mean = vec![of.eta.0; n];
                let mut latent = Matrix::new(n)?;
                latent.values[n_judges * n + n_judges] = of.eta.1.powi(2);
                let apart = if of.kind == Kind::Nothing { of.beta.1 } else { *spread };
                for ((about, deviation), first) in [(of.beta, 0), (of.gamma, n_judges + 1)] {
                    mean[first..first + n_judges].fill(each * about);
                    for i in 0..n_judges {
                        for j in 0..n_judges {
                            let own = f64::from(u8::from(i == j));
                            let away = own - 1.0 / to_f64(n_judges as u64);
                            latent.values[(first + i) * n + first + j] = (each * deviation).powi(2)
                                + (apart / to_f64(n_judges as u64)).powi(2) * away
                                + LEAST * own;
                        }
                    }
                }
                // To betas and gammas of fewer votes, and eta0.
                let mut to = Matrix::identity(n, 1.0)?;
                for (judge, more) in more.iter().enumerate() {
                    to.values[judge * (n + 1)] = *more;
                    let gamma = n_judges + 1 + judge;
                    to.values[gamma * (n + 1)] = *more;
                    to.values[n_judges * n + gamma] = -TIE_FEATURE;
                }
                let share = of.share / to_f64(spreads.len() as u64);
                parts.push(moved(of.kind, share, &mean, &latent, &to)?);
            }
        }
        let mut least = vec![f64::NEG_INFINITY; n];
        least[..n_judges].fill(if n_judges == 1 { LEAST_BETA } else { 0.0 });
        Self::new(parts, least)
    }

    /// Of grades, by the mean votes of the items, in grades from the middle of the scale: beta and
    /// the intercepts.
    ///
    /// # Errors
    /// [`Error::Input`] if there are not two grades, or a number is not finite.
    pub fn of_grades(n_grades: usize, centre: f64, spread: f64) -> Result<Self, Error> {
        if n_grades < 2 {
            return Err(Error::value("n_grades", n_grades, "at least 2"));
        }
        check_finite("means", &[centre, spread], 0)?;
        let n = n_grades;
        let half = 0.5 * to_f64(n_grades as u64);
        let cuts: Vec<f64> = (1..n_grades).map(|cut| to_f64(cut as u64) - half).collect();
        let furthest = cuts.iter().fold(1.0, |most: f64, cut| most.max(cut.abs()));
        let quantile = |cut: &f64| normal_quantile(0.5 + cut / (2.0 * half));
        let linked: Vec<f64> =
            cuts.iter().map(|cut| centre + spread * FURTHER_OUT * quantile(cut)).collect();
        let mut parts = Vec::new();
        for of in &GRADES {
            parts.push(grades(of, &cuts, (of.beta.0, of.beta.1), 1.0, furthest, 0.0)?);
        }
        let beta = (LINKED.beta.0 / spread, LINKED.beta.1 / spread);
        parts.push(grades(&LINKED, &linked, beta, beta.0 * spread, furthest, OF_GRADES)?);
        let mut covariance = Matrix::identity(n, ANY_LOG_ODDS.powi(2))?;
        covariance.values[0] = NO_BETA.powi(2);
        parts.push(Part {
            kind: Kind::Nothing,
            share: NOTHING,
            mean: vec![0.0; n],
            covariance: covariance.values,
        });
        let mut least = vec![f64::NEG_INFINITY; n];
        least[0] = LEAST_OF_GRADES;
        Self::new(parts, least)
    }

    /// With neighbours, each the parameters that its labels tell and their covariance, beside which
    /// this prior keeps a share.
    ///
    /// A part for each, a little wider, and one that spans them: what they have in common.
    ///
    /// # Errors
    /// [`Error::Input`] if there is none, the share is not from 0 to 1, or lengths do not agree.
    pub fn with_neighbours(
        &self,
        neighbours: &[(Vec<f64>, Vec<f64>)],
        share: f64,
    ) -> Result<Self, Error> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::value("weak_share", share, "a number above 0 and up to 1"));
        }
        if neighbours.is_empty() {
            return Err(Error::input("neighbours", "is empty", "at least one"));
        }
        let n = self.n_parameters();
        for (mean, covariance) in neighbours {
            same_length("mean", mean.len(), n, "the prior")?;
            same_length("covariance", covariance.len(), n * n, "the prior")?;
        }
        let number = to_f64(neighbours.len() as u64);
        let mut mean = vec![0.0; n];
        let mut within = Matrix::new(n)?;
        for (of_one, covariance) in neighbours {
            mean.iter_mut().zip(of_one).for_each(|(sum, x)| *sum += x / number);
            let sums = within.values.iter_mut().zip(covariance);
            sums.for_each(|(sum, value)| *sum += value / number);
        }
        let apart = Matrix::identity(n, APART.powi(2))?;
        let mut spanning = within;
        if neighbours.len() > 2 {
            let mut between = Matrix::new(n)?;
            for (of_one, _) in neighbours {
                let away: Vec<f64> = of_one.iter().zip(&mean).map(|(x, m)| x - m).collect();
                between.add_square(1.0 / (number - 1.0), &away);
            }
            between.mirror();
            spanning.add(&between);
        } else {
            spanning.add(&apart);
        }
        let of = |share: f64, mean: Vec<f64>, covariance: Matrix| Part {
            kind: Kind::Neighbours,
            share,
            mean,
            covariance: covariance.values,
        };
        let mut parts = vec![of((1.0 - share) * IN_COMMON, mean, spanning)];
        for (of_one, covariance) in neighbours {
            let mut wider = Matrix { values: covariance.clone(), n };
            wider.add(&apart);
            parts.push(of((1.0 - share) * (1.0 - IN_COMMON) / number, of_one.clone(), wider));
        }
        parts.retain(|part| part.share > 0.0);
        let weak = self.parts.iter().cloned();
        parts.extend(weak.map(|part| Part { share: share * part.share, ..part }));
        Self::new(parts, self.least.clone())
    }

    /// With so many covariates, whose weights come after that many parameters.
    ///
    /// # Errors
    /// [`Error::Input`] if there are not as many parameters.
    pub fn with_covariates(&self, n_covariates: usize, after: usize) -> Result<Self, Error> {
        let n = self.n_parameters();
        if after > n {
            return Err(Error::value("after", after, format!("at most {n}")));
        }
        if n_covariates == 0 {
            return Ok(self.clone());
        }
        let place = |i: usize| if i < after { i } else { i + n_covariates };
        let mut parts = Vec::new();
        for (share, width) in WIDTHS {
            for part in &self.parts {
                let mut mean = vec![0.0; n + n_covariates];
                let mut covariance = Matrix::new(n + n_covariates)?;
                for i in 0..n {
                    mean[place(i)] = part.mean[i];
                    for j in 0..n {
                        covariance.values[place(i) * (n + n_covariates) + place(j)] =
                            part.covariance[i * n + j];
                    }
                }
                for i in after..after + n_covariates {
                    covariance.values[i * (n + n_covariates + 1)] = width * width;
                }
                let (share, covariance) = (share * part.share, covariance.values);
                parts.push(Part { kind: part.kind, share, mean, covariance });
            }
        }
        let mut least = self.least.clone();
        least.splice(after..after, (0..n_covariates).map(|_| f64::NEG_INFINITY));
        Self::new(parts, least)
    }

    /// Its parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The least value of each parameter.
    pub fn least(&self) -> &[f64] {
        &self.least
    }

    /// Number of parameters.
    pub fn n_parameters(&self) -> usize {
        self.least.len()
    }
}

/// A part whose numbers are linear in what is believed.
fn moved(
    kind: Kind,
    share: f64,
    mean: &[f64],
    latent: &Matrix,
    to: &Matrix,
) -> Result<Part, Error> {
    let n = mean.len();
    let mut moved = vec![0.0; n];
    to.times(mean, &mut moved);
    let mut half = Matrix::new(n)?;
    for (out, row) in half.values.chunks_exact_mut(n).zip(latent.values.chunks_exact(n)) {
        to.times(row, out);
    }
    let mut covariance = Matrix::new(n)?;
    for column in 0..n {
        let of_column: Vec<f64> = (0..n).map(|row| half.values[row * n + column]).collect();
        let mut out = vec![0.0; n];
        to.times(&of_column, &mut out);
        (0..n).for_each(|row| covariance.values[row * n + column] = out[row]);
    }
    Ok(Part { kind, share, mean: moved, covariance: covariance.values })
}

/// A part of grades: beta, and intercepts that are beta times the cuts but for what moves them,
/// which is in units of `size`.
fn grades(
    of: &Grades,
    cuts: &[f64],
    beta: (f64, f64),
    size: f64,
    furthest: f64,
    of_grades: f64,
) -> Result<Part, Error> {
    let n = cuts.len() + 1;
    let mut latent = Matrix::new(n)?;
    latent.values[0] = beta.1.powi(2) + LEAST;
    for (i, one) in cuts.iter().enumerate() {
        for (j, other) in cuts.iter().enumerate() {
            let own = f64::from(u8::from(i == j));
            let together = of.shift.powi(2) + (of.stretch / furthest).powi(2) * one * other;
            latent.values[(i + 1) * n + j + 1] = size.powi(2) * (together + of.alone.powi(2) * own)
                + (of_grades.powi(2) + LEAST) * own;
        }
    }
    let mut to = Matrix::identity(n, 1.0)?;
    cuts.iter().enumerate().for_each(|(cut, value)| to.values[(cut + 1) * n] = *value);
    let mut mean = vec![0.0; n];
    mean[0] = beta.0;
    moved(Kind::Votes, of.share, &mean, &latent, &to)
}

/// The quantile of the standard normal distribution, by Newton's steps from a logistic one.
fn normal_quantile(p: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    let mut x = (p / (1.0 - p)).ln() / 1.702;
    for _ in 0..50 {
        let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let step = (normal_share(x) - p) / density;
        x -= step;
        if step.abs() < 1e-14 * (1.0 + x.abs()) {
            break;
        }
    }
    x
}

/// The share of the standard normal distribution below a number, by its series (Marsaglia, 2004).
fn normal_share(x: f64) -> f64 {
    let (mut term, mut sum, mut i) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        i += 2.0;
        term *= x * x / i;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// The logarithm of that share; far below 0 by Laplace's continued fraction.
pub(crate) fn ln_normal_share(x: f64) -> f64 {
    if x > -4.0 {
        return normal_share(x.min(9.0)).ln();
    }
    let fraction = (1..=60_u32).rev().fold(-x, |sum, i| f64::from(i) / sum - x);
    -0.5 * x * x - (fraction * std::f64::consts::TAU.sqrt()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_judge_of_eight_votes_has_the_numbers_as_they_stand() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let [main, ..] = prior.parts() else { panic!() };
        assert_eq!(main.mean, [1.2, 1.5 * 0.8, 0.8]);
        // eta at the tie feature is known by itself: gamma moves eta0 against it.
        let at = |i: usize, j: usize| main.covariance[3 * i + j];
        assert!((at(1, 1) - (1.5_f64.powi(2) + (1.5 * 0.6_f64).powi(2))).abs() < 1e-6);
        assert!((at(1, 2) - 1.5 * 0.36).abs() < 1e-6);
        assert_eq!((at(0, 1), at(0, 2)), (0.0, 0.0));
        let fewer = Prior::of_pairs(&[2.0]).unwrap();
        let more = (9.0_f64.ln() / 3.0_f64.ln()).powf(0.7);
        assert!((fewer.parts()[0].mean[0] - 1.2 * more).abs() < 1e-12);
        assert!((fewer.parts()[0].mean[1] - 1.2).abs() < 1e-12);
    }

    #[test]
    fn reversed_grades_have_mirrored_priors() {
        let [one, other] = [0.3, -0.3].map(|centre| Prior::of_grades(5, centre, 0.7).unwrap());
        for (one, other) in one.parts().iter().zip(other.parts()) {
            let mirrored: Vec<f64> = other.mean[1..].iter().rev().map(|x| -x).collect();
            assert!(one.mean[1..].iter().zip(&mirrored).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (p, wanted) in [(0.975, 1.959_963_984_540_054), (0.1, -1.281_551_565_544_600_4)] {
            assert!((normal_quantile(p) - wanted).abs() < 1e-12);
        }
    }

    #[test]
    fn logarithms_of_shares_are_those_of_the_normal_distribution_far_below_it_too() {
        let wanted = [
            (-10.0, -53.231_285_150_512_47),
            (-5.0, -15.064_998_393_988_725),
            (-4.0, -10.360_101_486_527_292),
            (0.0, -std::f64::consts::LN_2),
            (20.0, 0.0),
        ];
        for (x, wanted) in wanted {
            let found = ln_normal_share(x);
            assert!((found - wanted).abs() < 1e-11 * (1.0 + wanted.abs()), "{x}: {found}");
        }
    }

    #[test]
    fn covariates_come_between_and_widths_are_parts() {
        let prior = Prior::of_pairs(&[8.0]).unwrap().with_covariates(2, 1).unwrap();
        assert_eq!((prior.n_parameters(), prior.parts().len()), (5, 9));
        assert_eq!(prior.parts()[0].covariance[6..8], [1e-4, 0.0]);
        assert_eq!(prior.parts()[0].mean[3], 1.5 * 0.8);
        assert_eq!(prior.least()[1], f64::NEG_INFINITY);
    }

    #[test]
    fn neighbours_are_parts_and_what_is_wrong_is_named() {
        let weak = Prior::of_pairs(&[8.0]).unwrap();
        let one = |beta: f64| (vec![beta, 1.0, 0.5], Matrix::identity(3, 0.01).unwrap().values);
        let prior = weak.with_neighbours(&[one(1.0), one(2.0), one(1.5)], 0.1).unwrap();
        let shares: f64 = prior.parts()[..4].iter().map(|part| part.share).sum();
        assert!((shares - 0.9).abs() < 1e-12);
        assert_eq!(prior.parts()[0].mean, [1.5, 1.0, 0.5]);
        assert!((prior.parts()[0].covariance[0] - 0.26).abs() < 1e-12);
        assert!((prior.parts()[1].covariance[0] - (0.01 + 0.15 * 0.15)).abs() < 1e-12);
        for (neighbours, share, message) in [
            (vec![], 0.1, "neighbours is empty, expected at least one"),
            (vec![one(1.0)], 0.0, "weak_share is 0, expected a number above 0 and up to 1"),
            (vec![(vec![1.0], vec![1.0])], 0.5, "mean has 1 rows, expected 3 as in the prior"),
        ] {
            let error = weak.with_neighbours(&neighbours, share).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error = Prior::of_pairs(&[8.0, 0.0]).unwrap_err().to_string();
        assert_eq!(error, "usual_votes[1] is 0, expected a finite number above 0");
    }
}
