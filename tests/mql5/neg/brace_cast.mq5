// translate: 'static_cast' is C++
void OnStart()
  {
   Print(static_cast<int>(1.5));
  }
