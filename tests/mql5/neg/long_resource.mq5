// translate: is over 63 characters
#resource "\\Include\\MtBridge\\kernels\\multiply\\a_name_that_is_far_too_long.cl" as string TooLong
void OnStart()
  {
   Print(TooLong);
  }
