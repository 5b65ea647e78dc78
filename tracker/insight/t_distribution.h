/* t_distribution.h: Student's t distribution, also for fractional degrees of freedom. */
#ifndef DPT_INSIGHT_T_DISTRIBUTION_H
#define DPT_INSIGHT_T_DISTRIBUTION_H

/* P(|T| <= t) for t >= 0 and df > 0: 1 - I_x(df/2, 1/2) with x = df / (df + t^2) (Abramowitz & Stegun 26.7.1, 26.5). */
double t_distribution_inside(double t, double df);

/* Returns the t with t_distribution_inside(t, df) = confidence, 0 < confidence < 1. */
double t_distribution_quantile(double confidence, double df);

#endif
