#!/usr/bin/env Rscript
# Writes survival.json: what R's survival says of fixed waits.
#
#     apt-get install r-base-core r-cran-survival r-cran-jsonlite
#     Rscript survival.R > survival.json
#
# The Go tests read only the JSON.
library(survival)
library(jsonlite)

set.seed(20150817)
cases <- list(
  "none censored" = list(time = c(10, 20, 30, 40), came = c(1, 1, 1, 1)),
  "odd, none censored" = list(time = c(5, 3, 8, 1, 9), came = c(1, 1, 1, 1, 1)),
  "censored at the horizon" = list(time = c(10, 300, 30, 300, 25, 300, 18), came = c(1, 0, 1, 0, 1, 0, 1)),
  "ties" = list(time = c(4, 4, 4, 7, 7, 9, 9, 9, 12, 12), came = c(1, 1, 0, 1, 1, 1, 0, 1, 1, 0)),
  "fewer than half" = list(time = c(10, 60, 60, 60, 60), came = c(1, 0, 0, 0, 0)),
  "censored early" = list(time = c(2, 3, 5, 8, 13, 21, 34, 55), came = c(0, 1, 0, 1, 0, 1, 1, 1)),
  "one" = list(time = 7, came = 1),
  "thirty" = list(time = pmin(rlnorm(30, 4, 0.8), 120), came = NULL),
  "hundred" = list(time = pmin(rexp(100, 1 / 50), 90), came = NULL)
)

number <- function(x) if (length(x) == 0 || !is.finite(x)) NULL else unbox(as.numeric(x))

out <- lapply(names(cases), function(name) {
  time <- cases[[name]]$time
  came <- cases[[name]]$came
  if (is.null(came)) came <- as.numeric(time < max(time))
  fit <- survfit(Surv(time, came) ~ 1, conf.type = "log-log", conf.int = 0.95)
  ats <- sort(unique(c(time, mean(time), min(time) / 2)))
  at <- summary(fit, times = ats)
  horizons <- unique(c(max(time), median(time), mean(time)))
  q <- quantile(fit, 0.5)
  list(
    name = unbox(name), time = time, came = came,
    at = lapply(seq_along(ats), function(i) list(
      time = unbox(ats[i]), left = unbox(at$surv[i]), low = number(at$lower[i]), high = number(at$upper[i]))),
    restricted = lapply(horizons, function(h) {
      s <- summary(fit, rmean = h)$table
      list(horizon = unbox(h), mean = unbox(unname(s["rmean"])), se = unbox(unname(s["se(rmean)"])))
    }),
    median = number(q$quantile), median_low = number(q$lower), median_high = number(q$upper)
  )
})
cat(toJSON(list(R = unbox(R.version.string), survival = unbox(as.character(packageVersion("survival"))), cases = out), digits = NA, pretty = TRUE, null = "null"), "\n")
