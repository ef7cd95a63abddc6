#!/usr/bin/env Rscript
# Writes sequential.json: what R's rpact says of group-sequential designs.
#
#     apt-get install r-base-core r-cran-rpact r-cran-jsonlite
#     Rscript sequential.R > sequential.json
#
# The Go tests read only the JSON.
suppressPackageStartupMessages({
  library(rpact)
  library(jsonlite)
})

one <- function(type, alpha, beta, fractions) {
  d <- getDesignGroupSequential(
    kMax = length(fractions), alpha = alpha, beta = beta, sided = 2, twoSidedPower = TRUE,
    informationRates = fractions, typeOfDesign = type, tolerance = 1e-10)
  c <- getDesignCharacteristics(d)
  list(
    type = unbox(type), alpha = unbox(alpha), power = unbox(1 - beta), fractions = fractions,
    boundaries = d$criticalValues, spent = d$alphaSpent,
    largest = unbox(c$inflationFactor), mean_null = unbox(c$averageSampleNumber0),
    mean_true = unbox(c$averageSampleNumber1))
}

out <- list()
for (type in c("P", "OF", "asP", "asOF")) {
  for (k in c(2, 3, 4, 5, 10)) out[[length(out) + 1]] <- one(type, 0.05, 0.1, (1:k) / k)
  out[[length(out) + 1]] <- one(type, 0.01, 0.2, (1:4) / 4)
  if (type %in% c("asP", "asOF")) out[[length(out) + 1]] <- one(type, 0.05, 0.2, c(0.3, 0.5, 0.6, 0.85, 1))
}
cat(toJSON(list(version = unbox(as.character(packageVersion("rpact"))), designs = out), digits = 10, pretty = 1), "\n")
