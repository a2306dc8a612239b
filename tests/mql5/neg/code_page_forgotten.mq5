// compile: StringToCharArray
void OnStart()
  {
   uchar text[];
   Print(StringToCharArray("x",text));
  }
