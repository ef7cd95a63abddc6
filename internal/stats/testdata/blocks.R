#!/usr/bin/env Rscript
# Writes blocks.json: what R says of fixed iterations of treatments, by friedman.test,
# cor.test and acf, and the largest jump by its definition.
#
#     apt-get install r-base-core r-cran-jsonlite
#     Rscript blocks.R > blocks.json
#
# The Go tests read only the JSON.
library(jsonlite)

set.seed(20150817)
friedmans <- list(
  "R's own example" = matrix(c(5.40, 5.50, 5.55, 5.85, 5.70, 5.75, 5.20, 5.60, 5.50, 5.55, 5.50, 5.40, 5.90, 5.85, 5.70, 5.45, 5.55, 5.60, 5.40, 5.40, 5.35, 5.45, 5.50, 5.35, 5.25, 5.15, 5.00, 5.85, 5.80, 5.70, 5.25, 5.20, 5.10, 5.65, 5.55, 5.45, 5.60, 5.35, 5.45, 5.05, 5.00, 4.95, 5.50, 5.50, 5.40, 5.45, 5.55, 5.50, 5.55, 5.55, 5.35, 5.45, 5.50, 5.55, 5.50, 5.45, 5.25, 5.65, 5.60, 5.40, 5.70, 5.65, 5.55, 6.30, 6.30, 6.25), ncol = 3, byrow = TRUE),
  "three iterations" = matrix(c(1, 2, 3, 1, 3, 2, 1, 2, 3), ncol = 3, byrow = TRUE),
  "many ties" = matrix(sample(1:3, 60, replace = TRUE), ncol = 5),
  "one iteration all tied" = rbind(matrix(rnorm(20), ncol = 4), 1),
  "two treatments" = matrix(rnorm(24), ncol = 2),
  "no difference" = matrix(rlnorm(120), ncol = 6),
  "a large difference" = matrix(rlnorm(160), ncol = 4) * rep(c(1, 2, 3, 4), each = 40)
)
series <- list(
  "rising" = 1:8 + 0,
  "two" = c(2, 1),
  "noise" = rnorm(20),
  "a trend in noise" = rnorm(30) + (1:30) / 12,
  "a jump" = rnorm(24) + rep(c(0, -2), each = 12),
  "ties" = c(3, 1, 2, 2, 5, 4, 4, 4, 6, 7, 5, 8),
  "forty-nine" = rnorm(49),
  "fifty" = rnorm(50) - (1:50) / 40,
  "a hundred" = as.numeric(arima.sim(list(ar = 0.5), 100))
)

# The largest statistic of a rank sum test over all places where the series may be cut, by the
# signs of all differences (Pettitt 1979), over its variance without ties; and after how many
# values the parts have the least squares.
jump <- function(x) {
  n <- length(x)
  u <- sapply(seq_len(n - 1), function(k) sum(sign(outer(x[1:k], x[(k + 1):n], "-"))))
  k <- seq_len(n - 1)
  z <- 3 * u^2 / (k * (n - k) * (n + 1))
  parts <- sapply(k, function(k) sum((x[1:k] - mean(x[1:k]))^2) + sum((x[(k + 1):n] - mean(x[(k + 1):n]))^2))
  list(largest = max(z), after = which(parts < min(parts) + 1e-12)[1])
}

out <- list(
  R = unbox(R.version.string),
  friedman = lapply(names(friedmans), function(name) {
    m <- friedmans[[name]]
    f <- friedman.test(m)
    list(name = unbox(name), blocks = m, statistic = unbox(unname(f$statistic)), p = unbox(f$p.value))
  }),
  series = lapply(names(series), function(name) {
    x <- series[[name]]
    k <- suppressWarnings(cor.test(seq_along(x), x, method = "kendall"))
    j <- jump(x)
    list(name = unbox(name), x = x, tau = unbox(unname(k$estimate)), p = unbox(k$p.value),
      jump = unbox(j$largest), after = unbox(j$after),
      acf = unbox(acf(x, lag.max = 1, plot = FALSE)$acf[2]))
  })
)
cat(toJSON(out, digits = NA, pretty = TRUE), "\n")
