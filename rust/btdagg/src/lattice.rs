//! Finer points where a grid is too coarse for a posterior.

use crate::expansion::dot;
use crate::region::{Region, Vector};

/// Steps from the middle of a lattice to its edge, and the length of one in standard deviations.
const STEPS: i32 = 4;
const STEP: f64 = 0.8;

/// By how much a lattice takes the covariance to be larger than it was found to be.
const INFLATION: f64 = 2.25;

/// Mean and covariance of log beta, eta0 and gamma.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread {
    mean: Vector,
    covariance: [Vector; 3],
}

impl Spread {
    /// Of weighted points, each of which stands for a cell of that covariance.
    pub(crate) fn new(thetas: &[Vector], weights: &[f64], cell: &[Vector; 3]) -> Self {
        let mut spread = Self { mean: [0.0; 3], covariance: *cell };
        let places: Vec<Vector> = thetas.iter().copied().map(coordinates).collect();
        for (x, weight) in places.iter().zip(weights) {
            spread.mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += weight * x);
        }
        for (x, weight) in places.iter().zip(weights) {
            let off: Vector = std::array::from_fn(|i| x[i] - spread.mean[i]);
            for (i, line) in spread.covariance.iter_mut().enumerate() {
                line.iter_mut().zip(off).for_each(|(sum, x)| *sum += weight * off[i] * x);
            }
        }
        spread
    }
}

/// Points of a ball around a mean, evenly spaced in units of the standard deviations, as far as
/// they lie in the box.
#[derive(Debug)]
pub(crate) struct Lattice {
    pub(crate) thetas: Vec<Vector>,
    /// Whether a point lies on the ball's surface.
    pub(crate) at_edge: Vec<bool>,
    /// Covariance within the cell of a point, and the cell's volume.
    pub(crate) cell: [Vector; 3],
    pub(crate) volume: f64,
}

impl Lattice {
    pub(crate) fn new(spread: &Spread, region: &Region) -> Self {
        let root =
            cholesky(&spread.covariance).map(|line| line.map(|x| x * INFLATION.sqrt() * STEP));
        let (mut thetas, mut at_edge) = (Vec::new(), Vec::new());
        let axis = -STEPS..=STEPS;
        for (i, j, k) in axis
            .clone()
            .flat_map(|i| axis.clone().map(move |j| (i, j)))
            .flat_map(|(i, j)| axis.clone().map(move |k| (i, j, k)))
        {
            let distance = i * i + j * j + k * k;
            if distance > STEPS * STEPS {
                continue;
            }
            let step = [i, j, k].map(f64::from);
            let x: Vector = std::array::from_fn(|i| spread.mean[i] + dot(root[i], step));
            let theta = [x[0].exp(), x[1], x[2]];
            if region.nearest(theta) == theta {
                thetas.push(theta);
                at_edge.push(distance > (STEPS - 1) * (STEPS - 1));
            }
        }
        // A cell is a cube of steps, in each of which the variance is a twelfth.
        let cell = std::array::from_fn(|i| std::array::from_fn(|j| dot(root[i], root[j]) / 12.0));
        Self { thetas, at_edge, cell, volume: root[0][0] * root[1][1] * root[2][2] }
    }
}

fn coordinates([beta, eta0, gamma]: Vector) -> Vector {
    [beta.ln(), eta0, gamma]
}

/// The lower triangle whose product with its transpose is the matrix, as far as rounding lets it be
/// positive.
fn cholesky(matrix: &[Vector; 3]) -> [Vector; 3] {
    let least = 1e-14 * (0..3).map(|i| matrix[i][i]).sum::<f64>();
    let mut root = [[0.0; 3]; 3];
    for i in 0..3 {
        for j in 0..=i {
            let rest = matrix[i][j] - dot(root[i], root[j]);
            root[i][j] = if i == j { rest.max(least).sqrt() } else { rest / root[j][j] };
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    #[test]
    fn a_root_gives_its_matrix_back() {
        let matrix = [[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 0.7]];
        let root = cholesky(&matrix);
        for i in 0..3 {
            for j in 0..3 {
                assert!((dot(root[i], root[j]) - matrix[i][j]).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn a_normal_density_has_its_integral_and_its_moments() {
        let covariance = [[0.04, 0.02, 0.01], [0.02, 0.3, -0.1], [0.01, -0.1, 0.2]];
        let spread = Spread { mean: [0.1, 1.5, 0.5], covariance };
        let lattice = Lattice::new(&spread, &Region::new(&Bounds::default()).unwrap());
        let root = cholesky(&covariance);
        let density = |theta: &Vector| {
            let x = coordinates(*theta);
            let mut z = [0.0; 3];
            for i in 0..3 {
                z[i] = (x[i] - spread.mean[i] - dot(root[i], z)) / root[i][i];
            }
            (-0.5 * dot(z, z)).exp() / (std::f64::consts::TAU.powf(1.5))
        };
        let scale = root[0][0] * root[1][1] * root[2][2];
        let weights: Vec<f64> =
            lattice.thetas.iter().map(|theta| density(theta) * lattice.volume / scale).collect();
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-3);
        let found = Spread::new(&lattice.thetas, &weights, &[[0.0; 3]; 3]);
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 2e-3);
        assert!(close(&found.mean, &spread.mean), "{found:?}");
        assert!(close(found.covariance.as_flattened(), covariance.as_flattened()), "{found:?}");
    }
}
