// translate: 'auto' is C++
void OnStart()
  {
   auto x=1;
   Print(x);
  }
