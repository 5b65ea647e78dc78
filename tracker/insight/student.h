/* student.h: Student's t distribution, for fractional degrees of freedom too. */
#ifndef DPT_INSIGHT_STUDENT_H
#define DPT_INSIGHT_STUDENT_H

/* P(|T| <= t) for t >= 0 and df > 0: 1 - I_x(df/2, 1/2) with x = df / (df + t^2) (Abramowitz & Stegun 26.7.1, 26.5). */
double student_inside(double t, double df);

/* The t with student_inside(t, df) = confidence, 0 < confidence < 1. */
double student_quantile(double confidence, double df);

#endif
