//! Small symmetric matrices: their factors, inverses and determinants.

use crate::Error;
use crate::memory::filled;

/// A square matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) values: Vec<f64>,
    pub(crate) n: usize,
}

impl Matrix {
    /// Of zeros.
    pub(crate) fn new(n: usize) -> Result<Self, Error> {
        Ok(Self { values: filled(0.0, n * n)?, n })
    }

    pub(crate) fn identity(n: usize, factor: f64) -> Result<Self, Error> {
        let mut matrix = Self::new(n)?;
        matrix.values.iter_mut().step_by(n + 1).for_each(|value| *value = factor);
        Ok(matrix)
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.n..(row + 1) * self.n]
    }

    /// Adds a vector's product with itself, that many times, to the lower triangle.
    pub(crate) fn add_square(&mut self, factor: f64, x: &[f64]) {
        for (row, (line, &x_row)) in self.values.chunks_exact_mut(self.n).zip(x).enumerate() {
            let scaled = factor * x_row;
            line[..=row].iter_mut().zip(x).for_each(|(sum, x)| *sum += scaled * x);
        }
    }

    /// Copies the lower triangle to the upper one.
    pub(crate) fn mirror(&mut self) {
        for row in 0..self.n {
            for column in 0..row {
                self.values[column * self.n + row] = self.values[row * self.n + column];
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(sum, value)| *sum += value);
    }

    pub(crate) fn times(&self, x: &[f64], out: &mut [f64]) {
        for (out, line) in out.iter_mut().zip(self.values.chunks_exact(self.n)) {
            *out = dot(line, x);
        }
    }

    /// Leaves out rows and columns: they become those of the identity.
    pub(crate) fn hold(&mut self, place: usize) {
        for other in 0..self.n {
            self.values[place * self.n + other] = 0.0;
            self.values[other * self.n + place] = 0.0;
        }
        self.values[place * self.n + place] = 1.0;
    }

    /// The lower triangle whose product with its transpose is the matrix; pivots are no less than
    /// what rounding leaves of them.
    pub(crate) fn factor(mut self) -> Factor {
        let n = self.n;
        for row in 0..n {
            let least = 1e-15 * self.values[row * n + row].abs() + f64::MIN_POSITIVE;
            for column in 0..=row {
                let (above, below) = self.values.split_at_mut(row * n);
                let line = &mut below[..n];
                if column < row {
                    let other = &above[column * n..(column + 1) * n];
                    let rest = line[column] - dot(&line[..column], &other[..column]);
                    line[column] = rest / other[column];
                } else {
                    let rest = line[row] - dot(&line[..row], &line[..row]);
                    line[row] = rest.max(least).sqrt();
                }
            }
        }
        Factor(self)
    }

    /// As [`factor`](Self::factor), if the matrix is positive definite by more than rounding.
    pub(crate) fn factor_if_positive(self) -> Option<Factor> {
        let step = self.n + 1;
        let diagonal: Vec<f64> = self.values.iter().step_by(step).copied().collect();
        let factor = self.factor();
        let mut pivots = factor.0.values.iter().step_by(step).zip(diagonal);
        pivots.all(|(pivot, of)| pivot * pivot > 1e-12 * of).then_some(factor)
    }
}

/// A lower triangle.
#[derive(Debug, Clone)]
pub(crate) struct Factor(Matrix);

impl Factor {
    /// Solves the equations of the matrix, in place.
    pub(crate) fn solve(&self, x: &mut [f64]) {
        let n = self.0.n;
        for row in 0..n {
            let line = self.0.row(row);
            x[row] = (x[row] - dot(&line[..row], &x[..row])) / line[row];
        }
        for row in (0..n).rev() {
            let known: f64 = (row + 1..n).map(|other| self.0.row(other)[row] * x[other]).sum();
            x[row] = (x[row] - known) / self.0.row(row)[row];
        }
    }

    pub(crate) fn log_determinant(&self) -> f64 {
        let pivots = self.0.values.iter().step_by(self.0.n + 1);
        2.0 * pivots.map(|pivot| pivot.ln()).sum::<f64>()
    }

    pub(crate) fn inverse(&self) -> Result<Matrix, Error> {
        let n = self.0.n;
        let mut inverse = Matrix::identity(n, 1.0)?;
        inverse.values.chunks_exact_mut(n).for_each(|line| self.solve(line));
        inverse.mirror();
        Ok(inverse)
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        let mut matrix = Matrix::identity(3, 0.5).unwrap();
        for x in [[1.0, 2.0, -1.0], [0.5, 0.0, 2.0]] {
            matrix.add_square(2.0, &x);
        }
        matrix.mirror();
        let factor = matrix.clone().factor();
        let inverse = factor.inverse().unwrap();
        for row in 0..3 {
            let mut product = [0.0; 3];
            inverse.times(matrix.row(row), &mut product);
            for (column, value) in product.into_iter().enumerate() {
                let wanted = f64::from(u8::from(row == column));
                assert!((value - wanted).abs() < 1e-12, "{row} {column}: {value}");
            }
        }
        let of_inverse = inverse.factor().log_determinant();
        assert!((factor.log_determinant() + of_inverse).abs() < 1e-12);
    }
}
