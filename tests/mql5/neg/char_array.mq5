// translate: char[] is refused by builds from 5100 on
void OnStart()
  {
   char text[];
   Print(ArraySize(text));
  }
