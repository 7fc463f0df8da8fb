! Two parts, one after the other, of which the second works twice as long on each unit:
! gfortran fortran.f90 $(pkg-config --libs pdawl)
program divided
  use, intrinsic :: iso_c_binding
  implicit none

  ! pdawl_options of pdawl.h.
  type, bind(c) :: options_t
    integer(c_int32_t) :: version, parts
    integer(c_int64_t) :: units, granularity
    type(c_ptr) :: limits, weights, sizes, rates
    integer(c_int64_t) :: steps
    real(c_double) :: move_seconds, hysteresis
    type(c_ptr) :: balancer
  end type
  type, bind(c) :: range_t
    integer(c_int64_t) :: begin, end
  end type

  interface
    subroutine options_init(options, units, parts) bind(c, name='pdawl_options_init')
      import
      type(options_t), intent(out) :: options
      integer(c_int64_t), value :: units
      integer(c_int32_t), value :: parts
    end subroutine
    type(c_ptr) function divider_new(options) bind(c, name='pdawl_divider_new')
      import
      type(options_t), intent(in) :: options
    end function
    integer(c_int) function divider_next(divider, ranges) bind(c, name='pdawl_divider_next')
      import
      type(c_ptr), value :: divider
      type(range_t), intent(out) :: ranges(*)
    end function
    integer(c_int64_t) function divider_took(divider, seconds, moving) bind(c, name='pdawl_divider_took')
      import
      type(c_ptr), value :: divider
      real(c_double), intent(in) :: seconds(*)
      real(c_double), value :: moving
    end function
    subroutine divider_free(divider) bind(c, name='pdawl_divider_free')
      import
      type(c_ptr), value :: divider
    end subroutine
  end interface

  integer, parameter :: parts = 2, steps = 20
  integer(c_int64_t), parameter :: units = 300000
  type(options_t) :: options
  type(c_ptr) :: divider
  type(range_t) :: ranges(parts)
  real(c_double) :: seconds(parts), values(units)
  integer(c_int64_t) :: unit, began, ended, rate
  integer :: step, part, again

  call options_init(options, units, int(parts, c_int32_t))
  divider = divider_new(options)
  if (.not. c_associated(divider)) error stop 'the options are wrong'
  do step = 1, steps
    if (divider_next(divider, ranges) /= 0) error stop 'no ranges'
    do part = 1, parts
      call system_clock(began, rate)
      do again = 1, part
        ! Units count from 0 on, and ranges are without their end.
        do unit = ranges(part)%begin + 1, ranges(part)%end
          values(unit) = sin(real(unit, c_double)) * step
        end do
      end do
      call system_clock(ended)
      seconds(part) = real(ended - began, c_double) / real(rate, c_double)
    end do
    if (divider_took(divider, seconds, -1.0_c_double) < 0) error stop 'no seconds'
  end do
  print '(a, i0, a, i0)', 'units ', ranges(1)%end - ranges(1)%begin, ' ', ranges(2)%end - ranges(2)%begin
  if (any([(values(unit) /= sin(real(unit, c_double)) * steps, unit = 1, units)])) error stop 'wrong'
  call divider_free(divider)
end program
