use super::differences::{Differences, Grouping, Losses};
use super::monte_carlo::MonteCarlo;
use super::permutation::PermutationTest;
use crate::memory::{filled, reserved};
use crate::parallel::for_each_part;
use crate::{Error, Execution};

impl PermutationTest {
    /// P-values between every two methods, as (methods, methods) row by row, 1 on the diagonal.
    ///
    /// Row `i` and column `j` hold what [`paired`](Self::paired) finds for methods `i` and `j`
    /// where `i < j`, and the same is below the diagonal. That is meant for two-sided tests.
    ///
    /// # Errors
    /// [`Error::Input`], and those of [`paired`](Self::paired) for the first such pair.
    pub fn pairwise(
        &self,
        methods: &[Losses<'_>],
        grouping: Option<&Grouping>,
        execution: Execution<'_>,
    ) -> Result<Vec<f64>, Error> {
        if methods.len() < 2 {
            let came = format!("has {} methods", methods.len());
            return Err(Error::input("losses", came, "at least two"));
        }
        let n = methods.len();
        let with_place = || methods.iter().enumerate();
        let mut pairs = reserved(n * (n - 1) / 2)?;
        pairs.extend(
            with_place()
                .flat_map(|(i, a)| with_place().skip(i + 1).map(move |(j, b)| (i, j, a, b))),
        );
        let mut p_values = filled(1.0, pairs.len())?;
        for_each_part(&mut p_values, 1, execution, |start, part, mut watch| {
            for (p_value, (_, _, a, b)) in part.iter_mut().zip(pairs.iter().skip(start)) {
                let differences = Differences::between(a, b, grouping)?;
                *p_value = match self.exact(&differences, a, b, grouping, &mut watch)? {
                    Some(exact) => exact,
                    None => MonteCarlo::new(self, &differences).p_value_alone(&mut watch)?,
                };
            }
            Ok(())
        })?;
        let mut matrix = filled(1.0, n * n)?;
        for ((i, j, _, _), p_value) in pairs.iter().zip(p_values) {
            for place in [i * n + j, j * n + i] {
                matrix[place] = p_value;
            }
        }
        Ok(matrix)
    }
}
